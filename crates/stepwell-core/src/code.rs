//! Stable codes of the errors a user can meet.
//!
//! A code never changes its meaning and is never given to another error. Each has a page with
//! cause and remedy that `stepwell explain <code>` prints.

use core::fmt;

use serde::{Deserialize, Serialize};

macro_rules! codes {
    ($($(#[$doc:meta])* $name:ident = $number:literal,)*) => {
        /// A stable error code, printed as `SW0007`.
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(Serialize, Deserialize)]
        #[non_exhaustive]
        pub enum Code {
            $($(#[$doc])* $name = $number,)*
        }

        impl Code {
            /// Every code, in order.
            pub const ALL: &'static [Self] = &[$(Self::$name,)*];
        }
    };
}

codes! {
    /// A workflow has a cycle.
    Cycle = 1,
    /// A step names a parent that is unknown or belongs to another workflow.
    UnknownParent = 2,
    /// A name is empty, overlong, unprintable or reserved.
    BadName = 3,
    /// Two things have one name.
    DuplicateName = 4,
    /// A workflow has no steps, or too many.
    BadSize = 5,
    /// A policy of a step makes no sense.
    BadPolicy = 6,
    /// A configuration value makes no sense.
    BadConfig = 7,
    /// A payload is larger than allowed.
    PayloadTooLarge = 8,
    /// A value cannot be written by the codec, or is nested too deep to be read back.
    NotSerialisable = 9,
    /// A stored payload does not fit the type it is read as.
    DoesNotFit = 10,
    /// A run id was used before with another input or workflow.
    RunIdConflict = 11,
    /// No such workflow is registered or stored.
    UnknownWorkflow = 12,
    /// No such run.
    UnknownRun = 13,
    /// No such step in this workflow.
    UnknownStep = 14,
    /// The engine was stopped.
    Stopped = 15,
    /// A start names no tenant and the engine has no default one.
    NoTenant = 16,
    /// The run failed.
    RunFailed = 17,
    /// The run was cancelled.
    RunCancelled = 18,
    /// The wait for a result took longer than allowed.
    WaitTimedOut = 19,
    /// The store could not be reached or is busy.
    StoreUnavailable = 20,
    /// Stored data contradicts itself.
    StoreCorrupt = 21,
    /// The store knows as many tenants as fit, or a queue has used up its positions.
    FairnessLimit = 22,
    /// A version was registered before with another structure.
    VersionConflict = 23,
    /// A blocking call was made inside an async context, or an async one outside of a runtime.
    BlockingInAsync = 24,
    /// The step was skipped, so it has no output.
    StepSkipped = 25,
    /// A write by a leader that leads no longer.
    NotLeader = 26,
    /// The database refuses the user or the password.
    LoginRefused = 27,
    /// The user lacks rights on the store.
    MissingRights = 28,
    /// The store was made by a newer program.
    NewerSchema = 29,
    /// The store was made by an older program and may not be updated here.
    OlderSchema = 30,
    /// The store takes no writes.
    ReadOnlyStore = 31,
    /// The file is no store.
    NotAStore = 32,
    /// The folder or database does not exist.
    NoSuchPlace = 33,
    /// No encrypted connection comes about, or the server's certificate is not trusted.
    NoEncryption = 34,
    /// An argument of a call makes no sense.
    BadArgument = 35,
    /// A signal's key was used before with another signal.
    SignalKeyConflict = 36,
    /// The run holds as many signals that nobody got as it may.
    TooManySignals = 37,
    /// The run ended, or its end was decided, before the signal came.
    RunTakesNoSignals = 38,
    /// The run's payloads were written by a codec that this program does not have.
    OtherCodec = 39,
    /// The database itself is damaged.
    DamagedStore = 50,
}

impl fmt::Display for Code {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "SW{:04}", *self as u16)
    }
}

impl core::str::FromStr for Code {
    type Err = UnknownCode;

    fn from_str(text: &str) -> Result<Self, UnknownCode> {
        let digits = text.strip_prefix("SW").or_else(|| text.strip_prefix("sw")).unwrap_or(text);
        let number: u16 = digits.parse().map_err(|_| UnknownCode)?;
        Self::ALL.iter().copied().find(|code| *code as u16 == number).ok_or(UnknownCode)
    }
}

/// The text is no code of Stepwell.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct UnknownCode;

impl fmt::Display for UnknownCode {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "no such error code, they look like SW0007")
    }
}

impl core::error::Error for UnknownCode {}

#[cfg(test)]
mod tests {
    use super::*;
    use alloc::string::ToString;

    #[test]
    fn codes_read_back_as_they_are_printed() {
        for code in Code::ALL {
            assert_eq!(code.to_string().parse(), Ok(*code));
        }
        assert_eq!("7".parse(), Ok(Code::BadConfig));
        assert_eq!("SW9999".parse::<Code>(), Err(UnknownCode));
    }
}
