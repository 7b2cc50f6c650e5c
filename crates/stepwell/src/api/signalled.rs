//! What waits give, and how a step says that it waits.

use std::fmt;
use std::time::Duration;

use serde::de::{DeserializeOwned, Deserializer, Error as _, Visitor};
use serde::{Deserialize, Serialize};
use stepwell_core::run::{Attributes, WaitFor};

use crate::engine::SIGNALLED;

/// What a wait with a time-out gives.
///
/// A wait without one gives the signal's payload itself: then there is no time-out to think of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename = "stepwell::Signalled", rename_all = "snake_case")]
pub enum Signalled<T> {
    /// The signal came in time.
    Received(T),
    /// It did not.
    TimedOut,
}

impl<T> Signalled<T> {
    /// The payload, if the signal came in time.
    pub fn received(self) -> Option<T> {
        match self {
            Self::Received(payload) => Some(payload),
            Self::TimedOut => None,
        }
    }

    /// Whether the signal did not come in time.
    pub const fn is_timed_out(&self) -> bool {
        matches!(self, Self::TimedOut)
    }
}

/// How a step was resumed: see [`Ctx::resumed`](crate::Ctx::resumed).
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Resumed<T> {
    /// It was not: it has not waited yet.
    Not,
    /// By the signal it waited for.
    Signal(T),
    /// By the time-out of its wait.
    TimedOut,
}

/// Waits for a signal: what a step returns instead of an output or an error, to be executed again
/// when the signal has come.
///
/// ```
/// # use stepwell::{Ctx, Result, Resumed, StepError, Wait};
/// # use std::time::Duration;
/// async fn collect(ctx: Ctx<u32>) -> Result<u32> {
///     match ctx.resumed::<u32>()? {
///         Resumed::Signal(amount) => Ok(amount),
///         Resumed::TimedOut => Err(StepError::permanent("nobody paid")),
///         Resumed::Not => Err(Wait::on("paid").timeout(Duration::from_hours(14 * 24)).into()),
///     }
/// }
/// ```
///
/// The attempt that waits ends as SUSPENDED and is charged nothing. While it waits, the step holds
/// no slot and no worker.
#[derive(Clone, Debug, PartialEq, Eq)]
#[must_use = "a step waits by returning this: `Err(Wait::on(..).into())`"]
pub struct Wait(pub(super) WaitFor);

impl Wait {
    /// Waits for a signal of this name, for ever.
    pub fn on(signal: impl Into<String>) -> Self {
        let signals = vec![signal.into()];
        Self(WaitFor { signals, matching: Attributes::new(), timeout: None })
    }

    /// Waits this long at most. A signal that came before is taken also by a time-out of zero.
    pub fn timeout(mut self, timeout: Duration) -> Self {
        self.0.timeout = Some(timeout);
        self
    }

    /// Takes only signals that carry this attribute with this value.
    pub fn matching(mut self, attribute: impl Into<String>, value: impl fmt::Display) -> Self {
        self.0.matching.insert(attribute.into(), value.to_string());
        self
    }
}

/// The names of an enum's variants, as its `Deserialize` asks for them; `None` if it is no enum.
pub(super) fn variants_of<E: DeserializeOwned>() -> Option<&'static [&'static str]> {
    match E::deserialize(AskVariants) {
        Err(Asked(variants)) => variants,
        Ok(_) => None,
    }
}

/// Answers every question with an error that tells what was asked for.
struct AskVariants;

#[derive(Debug)]
struct Asked(Option<&'static [&'static str]>);

impl fmt::Display for Asked {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "asked for {:?}", self.0)
    }
}

impl std::error::Error for Asked {}

impl serde::de::Error for Asked {
    fn custom<T: fmt::Display>(_: T) -> Self {
        Self(None)
    }
}

impl<'de> Deserializer<'de> for AskVariants {
    type Error = Asked;

    fn deserialize_any<V: Visitor<'de>>(self, _: V) -> Result<V::Value, Asked> {
        Err(Asked::custom("no enum"))
    }

    fn deserialize_enum<V: Visitor<'de>>(
        self,
        name: &'static str,
        variants: &'static [&'static str],
        _: V,
    ) -> Result<V::Value, Asked> {
        Err(Asked(Some(variants).filter(|_| name != SIGNALLED)))
    }

    serde::forward_to_deserialize_any! {
        bool i8 i16 i32 i64 i128 u8 u16 u32 u64 u128 f32 f64 char str string bytes byte_buf option
        unit unit_struct newtype_struct seq tuple tuple_struct map struct identifier ignored_any
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::engine::decode;
    use crate::ports::{JsonCodec, Payload};

    #[derive(Debug, Deserialize, PartialEq)]
    #[serde(rename_all = "kebab-case")]
    enum Decision {
        Approved { by: String },
        RejectedFor(String),
        Withdrawn,
    }

    fn read<T: DeserializeOwned>(payload: &Payload) -> Result<T, crate::Error> {
        decode(&JsonCodec, "a parent's output", payload)
    }

    fn signal(name: &str, payload: &serde_json::Value) -> Payload {
        Payload::new("json".into(), payload.to_string().into_bytes()).of_signal(name)
    }

    #[test]
    fn the_variants_of_an_enum_are_the_signals_that_are_awaited() {
        let variants = ["approved", "rejected-for", "withdrawn"];
        assert_eq!(variants_of::<Decision>(), Some(&variants[..]));
        assert_eq!(variants_of::<String>(), None);
        assert_eq!(variants_of::<Signalled<u32>>(), None);
    }

    #[test]
    fn a_signal_is_read_as_its_payload_or_as_what_was_received() {
        let paid = signal("paid", &json!(7));
        assert_eq!(read::<u32>(&paid).ok(), Some(7));
        assert_eq!(read::<Signalled<u32>>(&paid).ok(), Some(Signalled::Received(7)));
        let timed_out = Payload::timed_out();
        assert_eq!(read::<Signalled<u32>>(&timed_out).ok(), Some(Signalled::TimedOut));
        let error = read::<u32>(&timed_out).expect_err("there is no number").to_string();
        assert!(error.contains("timed out"), "{error}");
    }

    #[test]
    fn an_enum_that_is_sent_is_told_from_one_that_signals_make_up() {
        let sent = signal("withdrawn", &json!({"approved": {"by": "Grace"}}));
        let approved = || Decision::Approved { by: "Grace".to_owned() };
        assert_eq!(read::<Decision>(&sent).ok(), Some(approved()));
        let made_up = signal("approved", &json!({"by": "Grace"})).into_variant();
        assert_eq!(read::<Decision>(&made_up).ok(), Some(approved()));
        let rejected = signal("rejected-for", &json!("cost")).into_variant();
        let expected = Signalled::Received(Decision::RejectedFor("cost".to_owned()));
        assert_eq!(read::<Signalled<Decision>>(&rejected).ok(), Some(expected));
        let withdrawn = signal("withdrawn", &json!(null)).into_variant();
        assert_eq!(read::<Decision>(&withdrawn).ok(), Some(Decision::Withdrawn));
    }

    #[test]
    fn a_misfit_names_the_signal_what_was_expected_and_what_came() {
        let error = read::<u32>(&signal("paid", &json!("seven"))).expect_err("no number");
        let text = error.to_string();
        assert!(text.contains("signal \"paid\" does not fit u32"), "{text}");
        assert!(text.contains("expected u32, found string"), "{text}");
        assert!(!text.contains("seven"), "values are not told: {text}");
    }

    #[test]
    fn what_was_received_can_be_handed_on_as_an_output() {
        for signalled in [Signalled::Received(7), Signalled::TimedOut] {
            let text = serde_json::to_vec(&signalled).expect("it can be written");
            let output = Payload::new("json".into(), text);
            assert_eq!(read::<Signalled<u32>>(&output).ok(), Some(signalled));
        }
    }
}
