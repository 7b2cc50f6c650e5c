//! Every setting of an engine, with defaults that a production team would keep.

use std::time::Duration;

use stepwell_core::code::Code;
use stepwell_core::id::Queue;
use stepwell_core::limits::{BATCH_ITEMS_MAX, PAYLOAD_BYTES_MAX};

use crate::error::Error;
use crate::ports::TenantSettings;

/// Every setting of an engine. `docs/configuration.md` has the table.
#[derive(Clone, Debug)]
pub struct Config {
    /// Tasks executed at once. Default: 256; an async step holds no thread, a blocking one takes
    /// one of as many threads while it runs. 0 makes a client: it
    /// starts, waits, cancels and queries, but executes nothing and never leads.
    pub slots: usize,
    /// The queues this worker serves. Default: `default`.
    pub queues: Vec<Queue>,
    /// How long a worker may be silent before it counts as dead. Default: 30 s.
    pub lease: Duration,
    /// How often a worker says that it lives. Default: 10 s; at most half the lease.
    pub heartbeat_interval: Duration,
    /// How long to wait at most before looking for work that nobody hinted at; after there was
    /// work, looks begin at a sixteenth of it. Default: 1 s.
    pub poll_interval: Duration,
    /// How long leadership lasts without being renewed. Default: 6 s.
    pub leader_ttl: Duration,
    /// Longest pause between two looks at the timers, for those that nobody hinted at. Known
    /// timers fire when they are due. Default: 1 s.
    pub timer_interval: Duration,
    /// How long starts, signals, cancels and reads are tried again while the store is unavailable,
    /// before the caller is told; a restart of a database is no error then. Default: 10 s.
    pub patience: Duration,
    /// How long a stopping engine waits for running steps. Default: 30 s.
    pub grace: Duration,
    /// Worker deaths after which a task is failed. Default: 3; 2 to 1,000.
    pub crash_limit: u32,
    /// Largest payload, in bytes. Default: 2 MiB.
    pub payload_bytes_max: usize,
    /// Most starts in one transaction. Default: 1,000.
    pub start_batch_max: usize,
    /// Most outcomes in one transaction. Default: 1,000.
    pub commit_batch_max: usize,
    /// Most timers fired in one transaction. Default: 1,000.
    pub timer_batch_max: usize,
    /// What holds for tenants without settings of their own, if it should be changed.
    pub tenant_default: Option<TenantSettings>,
}

impl Default for Config {
    fn default() -> Self {
        Self {
            slots: 256,
            queues: vec![Queue::default_queue()],
            lease: Duration::from_secs(30),
            heartbeat_interval: Duration::from_secs(10),
            poll_interval: Duration::from_secs(1),
            leader_ttl: Duration::from_secs(6),
            timer_interval: Duration::from_secs(1),
            patience: Duration::from_secs(10),
            grace: Duration::from_secs(30),
            crash_limit: 3,
            payload_bytes_max: PAYLOAD_BYTES_MAX,
            start_batch_max: 1_000,
            commit_batch_max: 1_000,
            timer_batch_max: 1_000,
            tenant_default: None,
        }
    }
}

/// Spans outside of this make no sense for any of the loops.
const SPAN_MIN: Duration = Duration::from_millis(1);
const SPAN_MAX: Duration = Duration::from_hours(7 * 24);

impl Config {
    /// Checks every value.
    ///
    /// # Errors
    /// `SW0007`, with the field, its value and what it may be.
    pub fn check(&self) -> Result<(), Error> {
        self.check_spans()?;
        self.check_counts()?;
        if self.queues.is_empty() && self.slots > 0 {
            return refuse("queues", "is empty, the worker would serve nothing");
        }
        if self.heartbeat_interval * 2 > self.lease {
            return refuse("heartbeat_interval", "is over half of `lease`");
        }
        if !(2..=1_000).contains(&self.crash_limit) {
            // At 1 every task would be a suspect, and suspects are executed alone.
            let n = self.crash_limit;
            return refuse("crash_limit", &format!("is {n}, it must be 2 to 1,000"));
        }
        self.check_tenant_default()
    }

    fn check_spans(&self) -> Result<(), Error> {
        let spans = [
            ("lease", self.lease),
            ("heartbeat_interval", self.heartbeat_interval),
            ("poll_interval", self.poll_interval),
            ("leader_ttl", self.leader_ttl),
            ("timer_interval", self.timer_interval),
        ];
        for (field, span) in spans {
            if !(SPAN_MIN..=SPAN_MAX).contains(&span) {
                return refuse(field, &format!("is {span:?}, it must be 1 ms to 7 days"));
            }
        }
        for (field, span) in [("patience", self.patience), ("grace", self.grace)] {
            if span > SPAN_MAX {
                return refuse(field, "is over 7 days");
            }
        }
        Ok(())
    }

    fn check_counts(&self) -> Result<(), Error> {
        let batches = [
            ("start_batch_max", self.start_batch_max),
            ("commit_batch_max", self.commit_batch_max),
            ("timer_batch_max", self.timer_batch_max),
        ];
        for (field, n) in batches {
            if n == 0 || n > BATCH_ITEMS_MAX {
                return refuse(field, &format!("is {n}, it must be 1 to {BATCH_ITEMS_MAX}"));
            }
        }
        if self.slots > 100_000 {
            return refuse("slots", "is over 100,000");
        }
        if self.payload_bytes_max == 0 || self.payload_bytes_max > 1 << 30 {
            return refuse("payload_bytes_max", "must be 1 byte to 1 GiB");
        }
        Ok(())
    }

    fn check_tenant_default(&self) -> Result<(), Error> {
        let refusal = self.tenant_default.and_then(TenantSettings::refusal);
        refusal.map_or(Ok(()), |why| refuse("tenant_default", &format!("makes no sense: {why}")))
    }
}

fn refuse(field: &str, why: &str) -> Result<(), Error> {
    Err(Error::refused(Code::BadConfig, format!("config: {field} {why}")))
}
