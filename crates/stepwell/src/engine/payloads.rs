//! Values to payloads and back, within the limits.

use std::borrow::Cow;
use std::fmt::Display;

use serde::Serialize;
use serde::de::DeserializeOwned;
use stepwell_core::code::Code;

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
    Ok(Payload { codec: Cow::Borrowed(codec.tag()), bytes: bytes.into() })
}

/// A payload as a value. A payload without a codec is that of a task without an output of its
/// own and reads as `()`.
///
/// # Errors
/// `SW0010` if another codec wrote it, or if it does not fit the type. `what` names the value.
pub(crate) fn decode<T: DeserializeOwned>(
    codec: &dyn Codec,
    what: &str,
    payload: &Payload,
) -> Result<T, Error> {
    let misfit = |why: String| {
        let type_name = std::any::type_name::<T>();
        Error::refused(Code::DoesNotFit, format!("{what} does not fit {type_name}: {why}"))
    };
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
        value = Some(erased_serde::deserialize(deserializer)?);
        Ok(())
    });
    read.map_err(|error| misfit(error.to_string()))?;
    value.ok_or_else(|| misfit("the codec read nothing".into()))
}
