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
    /// The signal that brought it, if one did. Boxed: most payloads have none and are moved often.
    pub signal: Option<Box<SignalTag>>,
}

/// What is known of the signal that brought a payload.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SignalTag {
    /// Its name.
    pub name: Arc<str>,
    /// Whether the name is read as the variant of an enum and the payload as its content. Stores
    /// do not know that: whoever declared the wait does.
    pub is_variant: bool,
}

/// The tag of what a wait gives whose deadline passed.
const TIMED_OUT: &str = "timed-out";

impl Payload {
    /// The payload of tasks without an output of their own, such as sleep nodes.
    #[must_use]
    pub fn empty() -> Self {
        Self::new(Cow::Borrowed(""), [])
    }

    /// What a codec with this tag wrote.
    #[must_use]
    pub fn new(codec: Cow<'static, str>, bytes: impl Into<Arc<[u8]>>) -> Self {
        Self { codec, bytes: bytes.into(), signal: None }
    }

    /// The same payload, as brought by a signal of this name.
    #[must_use]
    pub fn of_signal(self, name: &str) -> Self {
        let tag = SignalTag { name: name.into(), is_variant: false };
        Self { signal: Some(Box::new(tag)), ..self }
    }

    /// The same payload; if a signal brought it, its name is read as the variant of an enum.
    pub(crate) fn into_variant(mut self) -> Self {
        if let Some(signal) = &mut self.signal {
            signal.is_variant = true;
        }
        self
    }

    /// The name of the signal that brought it.
    #[must_use]
    pub fn signal_name(&self) -> Option<&str> {
        self.signal.as_ref().map(|signal| &*signal.name)
    }

    /// What a wait gives whose deadline passed.
    #[must_use]
    pub fn timed_out() -> Self {
        Self::new(Cow::Borrowed(TIMED_OUT), [])
    }

    /// Whether it is what a wait gives whose deadline passed.
    #[must_use]
    pub fn is_timed_out(&self) -> bool {
        self.codec == TIMED_OUT
    }
}

/// Payloads may hold secrets, so only their size is shown.
impl fmt::Debug for Payload {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Payload({}, {} bytes)", self.codec, self.bytes.len())
    }
}
