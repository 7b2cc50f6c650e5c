//! What connections are for.

/// What a connection is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Role {
    Work,
    Heartbeat,
    Leader,
    Listen,
}

impl Role {
    /// As the server's list of connections shows it.
    pub(super) fn application_name(self) -> &'static str {
        match self {
            Self::Work => "stepwell work",
            Self::Heartbeat => "stepwell heartbeat",
            Self::Leader => "stepwell leader",
            Self::Listen => "stepwell listen",
        }
    }
}
