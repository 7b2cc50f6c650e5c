//! Engines whose connections to PostgreSQL break in every way, on real time.

mod dark;
mod hosts;
mod lost;
mod outage;
mod pooled;
mod refused;
mod support;
mod wake_ups;
