//! What a process remembers of the database, and how the rest is looked up.
//!
//! Nothing here decides anything: what matters is checked in the transaction that acts on it, and
//! what is not remembered is read. `identity` tells whether the database is the remembered one.

pub(crate) mod guesses;
pub(crate) mod id_cache;
pub(crate) mod identity;
pub(crate) mod plans;
pub(crate) mod tenants;

pub(crate) use guesses::Guesses;
pub(crate) use id_cache::{IdCache, IdLookup};
pub(crate) use identity::Beliefs;
pub(crate) use plans::PlanCache;
