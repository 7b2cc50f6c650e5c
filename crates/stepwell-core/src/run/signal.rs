//! Signals that were sent to a run.

use alloc::collections::BTreeMap;
use alloc::string::String;
use alloc::vec::Vec;

use serde::{Deserialize, Serialize};

use super::WaitRow;
use crate::id::{Node, check_name};
use crate::limits::{ATTRIBUTE_NAME_BYTES_MAX, ATTRIBUTE_VALUE_BYTES_MAX, ATTRIBUTES_MAX};
use crate::time::Timestamp;

/// Attributes: what a signal carries beside its payload, and what a wait asks for.
pub type Attributes = BTreeMap<String, String>;

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

/// What is loaded of the waits and signals of a run.
#[derive(Clone, Debug, Default)]
pub struct Inbox {
    /// Its open waits.
    pub waits: Vec<WaitRow>,
    /// Signals that were sent to it: those under the keys that were asked for, and, where that was
    /// asked for, all that nobody got.
    pub signals: Vec<SignalRow>,
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
