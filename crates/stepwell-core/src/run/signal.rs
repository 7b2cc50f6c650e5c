//! Signals that were sent to a run, and the waits they are for.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use serde::{Deserialize, Serialize};

use crate::id::{Node, check_name};
use crate::limits::{
    ATTRIBUTE_NAME_BYTES_MAX, ATTRIBUTE_VALUE_BYTES_MAX, ATTRIBUTES_MAX, AWAITED_SIGNALS_MAX,
    SPAN_MAX,
};
use crate::time::Timestamp;

/// Attributes: what a signal carries beside its payload, and what a wait asks for.
pub type Attributes = BTreeMap<String, String>;

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

/// An open wait. A task that is WAITING has one.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct WaitRow {
    /// The task that waits.
    pub node: Node,
    /// The number of the event that opened it: of two waits the one with the smaller number is
    /// the older.
    pub number: u64,
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

/// A signal that was sent to a run, without its payload: rules never look into payloads.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub struct SignalRow {
    /// Its number within the run, from 1, in the order of storing.
    pub number: u64,
    /// Its name.
    pub name: String,
    /// What tells a repeated signal from another one, unique in the run.
    pub key: String,
    /// What it carries beside its payload.
    pub attributes: Attributes,
    /// A digest of name, attributes and payload, to compare signals of one key.
    pub digest: [u8; 32],
    /// When it was stored.
    pub sent_at: Timestamp,
    /// The task that got it; `None` as long as nobody did.
    pub consumed_by: Option<Node>,
}

/// What ended a wait. It stays with the task until that is done or waits again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub enum Resumed {
    /// The run's signal of this number.
    Signal(u64),
    /// The deadline.
    TimedOut,
}

/// What is loaded of the waits and signals of a run.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// Its open waits.
    pub waits: Vec<WaitRow>,
    /// Signals that were sent to it: those under the keys that were asked for, and, where that was
    /// asked for, all that nobody got.
    pub signals: Vec<SignalRow>,
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

/// Checks the attributes of a signal or a wait.
///
/// # Errors
/// With what is wrong about them.
pub fn check_attributes(attributes: &Attributes) -> Result<(), &'static str> {
    if attributes.len() > ATTRIBUTES_MAX {
        return Err("there are more than 8 attributes");
    }
    let is_bad_name =
        |name: &String| name.len() > ATTRIBUTE_NAME_BYTES_MAX || check_name(name).is_err();
    if attributes.keys().any(is_bad_name) {
        return Err("an attribute's name is empty, over 64 bytes, or has a control character");
    }
    let is_bad_value =
        |value: &String| value.len() > ATTRIBUTE_VALUE_BYTES_MAX || value.contains('\0');
    if attributes.values().any(is_bad_value) {
        return Err("an attribute's value is over 256 bytes, or has a NUL character");
    }
    Ok(())
}

impl WaitRow {
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
