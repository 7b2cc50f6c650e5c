//! Opaque payloads with the tag of the codec that wrote them.

use std::borrow::Cow;
use std::fmt;
use std::sync::Arc;

/// Bytes as a codec wrote them. Stores keep them as they are and never look inside.
#[derive(Clone, PartialEq, Eq)]
pub struct Payload {
    /// The tag of the codec.
    pub codec: Cow<'static, str>,
    /// The bytes.
    pub bytes: Arc<[u8]>,
}

impl Payload {
    /// The payload of tasks without an output of their own, such as sleep nodes.
    #[must_use]
    pub fn empty() -> Self {
        Self { codec: Cow::Borrowed(""), bytes: Arc::from([]) }
    }
}

/// Payloads may hold secrets, so only their size is shown.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({}, {} bytes)", self.codec, self.bytes.len())
    }
}
