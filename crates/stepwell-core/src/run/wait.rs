//! What tasks wait for: signals, and in functions also the end of sleeps and of pauses before a
//! step is tried again.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use super::{Attributes, SignalRow, check_attributes};
use crate::id::{Node, check_name};
use crate::limits::{AWAITED_SIGNALS_MAX, SPAN_MAX};
use crate::time::Timestamp;

/// What a task waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitFor {
    /// The names of the signals; any of them will do.
    pub signals: Vec<String>,
    /// Attributes that a signal must carry with the same values.
    #[serde(default, skip_serializing_if = "BTreeMap::is_empty")]
    pub matching: Attributes,
    /// How long at most; for ever if not given.
    pub timeout: Option<Duration>,
}

/// What ends a wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum WaitKind {
    /// A signal, or its deadline.
    Signal = 0,
    /// Its deadline, which is the end of a function's sleep.
    Sleep = 1,
    /// Its deadline, when a step of a function is tried again. Nothing is recorded of that.
    Retry = 2,
}

impl WaitKind {
    /// Every kind, in the order of the numbers that stores keep them under.
    pub const ALL: &'static [Self] = &[Self::Signal, Self::Sleep, Self::Retry];
}

/// Something that a function waits for.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct FunctionWait {
    /// The memo that its end is recorded under.
    pub key: String,
    /// Its place among the calls of the function: of two, the one that was called first is older.
    pub place: u32,
    /// What ends it.
    pub kind: WaitKind,
    /// The names of the signals; any of them will do.
    pub signals: Vec<String>,
    /// Attributes that a signal must carry with the same values.
    pub matching: Attributes,
    /// When it is over, by the store's time.
    pub deadline: Option<Timestamp>,
}

/// An open wait. A task that is WAITING has one, a function may have several, also while it runs.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitRow {
    /// The task that waits.
    pub node: Node,
    /// The memo that its end is recorded under; empty unless a function waits.
    pub key: String,
    /// The number of the event that opened it, or that came next when it opened: of two waits the
    /// one with the smaller number is the older.
    pub number: u64,
    /// Its place among the waits of its task that opened together.
    pub place: u32,
    /// What ends it.
    pub kind: WaitKind,
    /// The names of the signals; any of them will do.
    pub signals: Vec<String>,
    /// Attributes that a signal must carry with the same values.
    pub matching: Attributes,
    /// How many signals had been sent to the run before it opened. Those are in time, whatever its
    /// deadline.
    pub n_signals_before: u64,
    /// When it opened.
    pub opened_at: Timestamp,
    /// When it is over.
    pub deadline: Option<Timestamp>,
}

/// What ended a wait. It stays with the task until that is done or waits again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resumed {
    /// The run's signal of this number.
    Signal(u64),
    /// The deadline.
    TimedOut,
}

impl WaitFor {
    /// Checks names, attributes and time-out.
    ///
    /// # Errors
    /// With the field that is wrong, and why.
    pub fn check(&self) -> Result<(), (&'static str, &'static str)> {
        if self.signals.is_empty() {
            return Err(("signals", "no signal is named"));
        }
        if self.signals.len() > AWAITED_SIGNALS_MAX {
            return Err(("signals", "more than 64 are named"));
        }
        if self.signals.iter().any(|name| check_name(name).is_err()) {
            return Err(("signals", "a name is empty, over 200 bytes, or has a control character"));
        }
        if self.timeout.is_some_and(|timeout| timeout > SPAN_MAX) {
            return Err(("timeout", "is longer than a hundred years"));
        }
        check_attributes(&self.matching).map_err(|why| ("matching", why))
    }
}

impl WaitRow {
    /// By what waits of a run are sorted, the oldest first.
    #[must_use]
    pub const fn age(&self) -> (u64, u32, Node) {
        (self.number, self.place, self.node)
    }

    /// Whether a signal is one that this wait is for.
    #[must_use]
    pub fn is_for(&self, name: &str, attributes: &Attributes) -> bool {
        let is_carried = |(name, value): (&String, &String)| attributes.get(name) == Some(value);
        self.signals.iter().any(|signal| signal == name) && self.matching.iter().all(is_carried)
    }

    /// Whether it is over at this moment.
    #[must_use]
    pub fn is_over(&self, now: Timestamp) -> bool {
        self.deadline.is_some_and(|deadline| deadline <= now)
    }

    /// Whether it gets a stored signal: one that it is for and that came in time. A signal that
    /// was there before the wait is in time.
    #[must_use]
    pub fn takes(&self, signal: &SignalRow) -> bool {
        let is_in_time = signal.number <= self.n_signals_before || !self.is_over(signal.sent_at);
        is_in_time && signal.consumed_by.is_none() && self.is_for(&signal.name, &signal.attributes)
    }
}

impl Resumed {
    /// As stores keep it: the signal's number, 0 for the deadline.
    #[must_use]
    pub const fn number(self) -> u64 {
        match self {
            Self::Signal(number) => number,
            Self::TimedOut => 0,
        }
    }

    /// What a stored number stands for.
    #[must_use]
    pub const fn of_number(number: u64) -> Self {
        match number {
            0 => Self::TimedOut,
            number => Self::Signal(number),
        }
    }
}
