//! Values to payloads and back, within the limits.

use std::borrow::Cow;
use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::code::Code;
use stepwell_core::workflow::StepPolicy;

use super::misfit::without_values;
use super::received::{Received, TimedOut};
use crate::error::Error;
use crate::ports::{Codec, Payload};

/// A value as a payload.
///
/// # Errors
/// `SW0009` if the codec cannot write it, `SW0008` if it is too large. `what` names the value.
pub(crate) fn encode(
    codec: &dyn Codec,
    bytes_max: usize,
    what: impl Display,
    value: &impl Serialize,
) -> Result<Payload, Error> {
    let bytes = codec.encode(value).map_err(|error| {
        Error::refused(Code::NotSerialisable, format!("{what} cannot be written: {error}"))
    })?;
    if bytes.len() > bytes_max {
        let n = bytes.len();
        let message = format!(
            "{what} has {n} bytes, the limit is {bytes_max}; store large data elsewhere and pass \
             a reference, or raise `payload_bytes_max`"
        );
        return Err(Error::refused(Code::PayloadTooLarge, message));
    }
    Ok(Payload::new(Cow::Borrowed(codec.tag()), bytes))
}

/// A payload as a value. A payload without a codec is that of a task without an output of its
/// own and reads as `()`. What a wait gave is read as [`Received`] or [`TimedOut`].
///
/// # Errors
/// `SW0010` if another codec wrote it, or if it does not fit the type. `what` names the value.
pub(crate) fn decode<T: DeserializeOwned>(
    codec: &dyn Codec,
    what: &str,
    payload: &Payload,
) -> Result<T, Error> {
    let signal = payload.signal.as_ref();
    let misfit = |why: String| {
        let type_name = std::any::type_name::<T>();
        let what = signal.map_or(what.to_owned(), |signal| format!("signal {:?}", signal.name));
        Error::refused(Code::DoesNotFit, format!("{what} does not fit {type_name}: {why}"))
    };
    if payload.is_timed_out() {
        return T::deserialize(TimedOut).map_err(|error| misfit(error.to_string()));
    }
    if payload.codec.is_empty() {
        let unit = serde::de::value::UnitDeserializer::<serde::de::value::Error>::new();
        return T::deserialize(unit).map_err(|error| misfit(error.to_string()));
    }
    if payload.codec != codec.tag() {
        let why = format!("codec {:?} wrote it, this engine has {:?}", payload.codec, codec.tag());
        return Err(misfit(why));
    }
    let mut value = None;
    let read = codec.decode(&payload.bytes, &mut |deserializer| {
        value = Some(match signal {
            None => erased_serde::deserialize(deserializer)?,
            Some(signal) => {
                let variant = signal.is_variant.then_some(&*signal.name);
                T::deserialize(Received { variant, payload: deserializer })?
            }
        });
        Ok(())
    });
    read.map_err(|error| misfit(without_values(&error.to_string(), place::<T>(codec, payload))))?;
    value.ok_or_else(|| misfit("the codec read nothing".into()))
}

/// Where in a payload lies what does not fit. It is read once more for that.
fn place<T: DeserializeOwned>(codec: &dyn Codec, payload: &Payload) -> String {
    let mut place = String::new();
    // How this read ends is known already.
    let _ = codec.decode(&payload.bytes, &mut |deserializer| {
        let mut track = serde_path_to_error::Track::new();
        let deserializer = serde_path_to_error::Deserializer::new(deserializer, &mut track);
        let read = match &payload.signal {
            None => T::deserialize(deserializer),
            Some(signal) => {
                let variant = signal.is_variant.then_some(&*signal.name);
                T::deserialize(Received { variant, payload: deserializer })
            }
        };
        if read.is_err() {
            place = track.path().to_string();
        }
        read.map(|_| ())
    });
    place
}

/// What a task gave, read as its workflow declares it: several signals of one wait are the variants
/// of an enum.
pub(crate) fn as_declared(policy: Option<&StepPolicy>, payload: Payload) -> Payload {
    let is_any = policy.and_then(|policy| policy.wait.as_ref()).is_some_and(|wait| wait.is_any);
    if is_any { payload.into_variant() } else { payload }
}
