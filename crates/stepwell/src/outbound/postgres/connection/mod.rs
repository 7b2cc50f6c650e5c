//! Connections to the server: how they are made, what they are for, and the pools that keep them.

pub(crate) mod connect;
mod hosts;
pub(crate) mod options;
pub(crate) mod patience;
pub(crate) mod pool;
pub(crate) mod role;
pub(crate) mod settings;
pub(crate) mod tls;
