//! Names and numbers that identify things, each with a type of its own.
//!
//! A name that enters the engine is checked here once, so that no store ever sees an empty,
//! overlong or unprintable one.

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use core::fmt;

use serde::{Deserialize, Serialize};

use crate::limits::NAME_BYTES_MAX;

/// Why a name is refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum NameError {
    /// It has no characters.
    Empty,
    /// It has more than [`NAME_BYTES_MAX`] bytes.
    TooLong {
        /// Its length in bytes.
        bytes: usize,
    },
    /// It holds a control character, such as a line break or NUL.
    Unprintable,
}

impl fmt::Display for NameError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Empty => write!(f, "is empty"),
            Self::TooLong { bytes } => {
                write!(f, "has {bytes} bytes, the limit is {NAME_BYTES_MAX}")
            }
            Self::Unprintable => write!(f, "holds a control character"),
        }
    }
}

impl core::error::Error for NameError {}

/// Checks a name that came from outside.
///
/// # Errors
/// When the name is empty, overlong, or holds a control character.
pub fn check_name(name: &str) -> Result<(), NameError> {
    if name.is_empty() {
        return Err(NameError::Empty);
    }
    if name.len() > NAME_BYTES_MAX {
        return Err(NameError::TooLong { bytes: name.len() });
    }
    if name.chars().any(char::is_control) {
        return Err(NameError::Unprintable);
    }
    Ok(())
}

// Shared, because rows are copied far more often than names are made.
macro_rules! name_type {
    ($(#[$doc:meta])* $name:ident) => {
        $(#[$doc])*
        #[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
        #[serde(try_from = "String", into = "String")]
        pub struct $name(Arc<str>);

        impl TryFrom<String> for $name {
            type Error = NameError;
            fn try_from(name: String) -> Result<Self, NameError> {
                Self::new(name)
            }
        }

        impl From<$name> for String {
            fn from(name: $name) -> Self {
                name.as_str().to_string()
            }
        }

        impl $name {
            /// Takes a checked name.
            ///
            /// # Errors
            /// When the name is empty, overlong, or holds a control character.
            pub fn new(name: impl Into<String>) -> Result<Self, NameError> {
                let name = name.into();
                check_name(&name)?;
                Ok(Self(name.into()))
            }

            /// The name as text.
            #[must_use]
            pub fn as_str(&self) -> &str {
                &self.0
            }
        }

        impl fmt::Display for $name {
            fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str(&self.0)
            }
        }

        impl core::str::FromStr for $name {
            type Err = NameError;
            fn from_str(name: &str) -> Result<Self, NameError> {
                Self::new(name)
            }
        }
    };
}

name_type! {
    /// Whose work it is: the unit of fairness and isolation.
    Tenant
}
name_type! {
    /// The caller's name of a run, unique per tenant.
    RunId
}
name_type! {
    /// One engine instance in one process, readable: app, host, pid and a random part.
    WorkerId
}
name_type! {
    /// A named line of ready tasks.
    Queue
}

impl Queue {
    /// The queue of a step whose author named none.
    #[must_use]
    pub fn default_queue() -> Self {
        Self("default".into())
    }
}

/// The engine's own key of a run, made by the client so that a repeated start finds itself.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct RunKey(pub u128);

impl fmt::Display for RunKey {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:032x}", self.0)
    }
}

/// The number of a step within its workflow.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Node(pub u32);

impl Node {
    /// The task of a workflow's failure handler. It lies above every step's number and within
    /// a signed 32-bit column.
    pub const ON_FAILURE: Self = Self(2_000_000_000);

    /// Where the timer stands that ends the run. No task has this number.
    pub const DEADLINE: Self = Self(2_000_000_001);

    /// Where the timer stands upon which the leader looks at the run. No task has this number.
    pub const LOOK_AGAIN: Self = Self(2_000_000_002);

    /// The node as an index into the graph's tables.
    #[must_use]
    pub const fn index(self) -> usize {
        self.0 as usize
    }
}

/// Fences one claim: a write that carries an older token of the task changes nothing.
///
/// The upper half counts claims of the store, the lower half is random, since a database that
/// failed over may hand out the same count again.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Token(pub u128);

impl Token {
    /// The token of the store's `count`th claim, salted by the claiming worker.
    #[must_use]
    pub const fn new(count: u64, salt: u64) -> Self {
        Self(((count as u128) << 64) | salt as u128)
    }

    /// What the claiming worker salted it with.
    #[must_use]
    #[expect(clippy::cast_possible_truncation, reason = "the salt is the lower half")]
    pub const fn salt(self) -> u64 {
        self.0 as u64
    }
}

/// A term of leadership. It only grows, and fences every write of a leader.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Epoch(pub u64);

/// The store's number of a definition.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct DefinitionId(pub u32);

/// The store's number of a service: code that a task needs to be executed and that workers have.
/// Queues and registrations name services, runs name the plan they are decided on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct ServiceId(pub u32);

/// A number that a store draws by chance for a definition or a tenant. Where a database was
/// restored or made anew, numbers may stand for something else by now; who remembers one tells by
/// the mark.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash, Serialize, Deserialize)]
pub struct Mark(pub i64);

impl DefinitionId {
    /// The service of a registered workflow version, which has the number of its definition.
    #[must_use]
    pub const fn service(self) -> ServiceId {
        ServiceId(self.0)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_refused_when_empty_overlong_or_unprintable() {
        assert_eq!(check_name(""), Err(NameError::Empty));
        assert_eq!(check_name(&"x".repeat(201)), Err(NameError::TooLong { bytes: 201 }));
        assert_eq!(check_name("a\0b"), Err(NameError::Unprintable));
        assert_eq!(check_name(&"x".repeat(200)), Ok(()));
        assert_eq!(check_name("Grüße 7"), Ok(()));
    }

    #[test]
    fn tokens_of_one_count_differ_by_their_salt() {
        assert_ne!(Token::new(1, 7), Token::new(1, 8));
        assert!(Token::new(2, 0) > Token::new(1, u64::MAX));
    }
}
