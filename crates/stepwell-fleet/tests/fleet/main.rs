//! Real processes on real databases: what is promised holds when they die, stall and restart.

mod crashes;
mod fail_over;
mod pooler;
mod server;
mod sharing;
mod shutdown;
mod sqlite_disk;
mod sqlite_kills;
mod support;
