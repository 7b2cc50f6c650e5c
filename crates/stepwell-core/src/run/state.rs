//! The states of tasks, runs and attempts, with the numbers stores keep them under.

/// States with the numbers and names that they are kept under.
macro_rules! states {
    (
        $(#[$doc:meta])* $name:ident {
            $($(#[$vdoc:meta])* $variant:ident = $number:literal $text:literal,)*
        }
    ) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[derive(serde::Serialize, serde::Deserialize)]
        #[serde(rename_all = "SCREAMING_SNAKE_CASE")]
        #[non_exhaustive]
        pub enum $name {
            $($(#[$vdoc])* $variant = $number,)*
        }

        impl $name {
            /// Every state, in order of its number.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The state as it is written everywhere.
            #[must_use]
            pub const fn as_str(self) -> &'static str {
                match self { $(Self::$variant => $text,)* }
            }
        }

        impl core::fmt::Display for $name {
            fn fmt(&self, f: &mut core::fmt::Formatter<'_>) -> core::fmt::Result {
                f.pad(self.as_str())
            }
        }
    };
}

pub(super) use states;

states! {
    /// Where a task stands.
    TaskState {
        /// Some parent is not resolved yet.
        Pending = 0 "PENDING",
        /// Ready for a worker, or due to be at a known time.
        Queued = 1 "QUEUED",
        /// A worker holds a claim on it.
        Running = 2 "RUNNING",
        /// A timer will move it on.
        Sleeping = 3 "SLEEPING",
        /// A signal will move it on, or its deadline.
        Waiting = 4 "WAITING",
        /// Done, with an output.
        Completed = 5 "COMPLETED",
        /// Failed for good.
        Failed = 6 "FAILED",
        /// Will not be executed because something else failed or the run was cancelled.
        Cancelled = 7 "CANCELLED",
        /// Not executed because of a condition or a skipped parent.
        Skipped = 8 "SKIPPED",
    }
}

states! {
    /// Where a run stands.
    RunStatus {
        /// Tasks are open.
        Running = 0 "RUNNING",
        /// Its end is decided, the failure handler is at work.
        Ending = 1 "ENDING",
        /// Ended well.
        Completed = 2 "COMPLETED",
        /// Ended because a task failed.
        Failed = 3 "FAILED",
        /// Ended because somebody cancelled it.
        Cancelled = 4 "CANCELLED",
    }
}

states! {
    /// How one execution of a task ended.
    AttemptState {
        /// With an output.
        Completed = 0 "COMPLETED",
        /// With an error or a panic.
        Failed = 1 "FAILED",
        /// It took too long.
        TimedOut = 2 "TIMED_OUT",
        /// The run was cancelled under it.
        Cancelled = 3 "CANCELLED",
        /// Its worker died.
        Lost = 4 "LOST",
        /// Its worker handed it back while shutting down.
        Released = 5 "RELEASED",
        /// It waits for something and will go on in another execution.
        Suspended = 6 "SUSPENDED",
    }
}

impl TaskState {
    /// Whether nothing will change this state any more.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled | Self::Skipped)
    }
}

impl RunStatus {
    /// Whether the run has ended.
    #[must_use]
    pub const fn is_terminal(self) -> bool {
        matches!(self, Self::Completed | Self::Failed | Self::Cancelled)
    }
}
