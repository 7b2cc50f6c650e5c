//! How values become payloads and back.

use std::collections::BTreeMap;

use erased_serde::{Deserializer, Serialize};
use serde_json::value::RawValue;
use sha2::{Digest, Sha256};
use stepwell_core::limits::PAYLOAD_DEPTH_MAX;

use super::non_finite;

/// Turns values into bytes and back. Given to the engine's builder; JSON is the default.
///
/// The engine stores the codec's tag beside the bytes and refuses to read a payload that another
/// codec wrote.
pub trait Codec: Send + Sync + 'static {
    /// A short stable name that is stored with every payload.
    fn tag(&self) -> &'static str;

    /// The value as bytes.
    fn encode(&self, value: &dyn Serialize) -> Result<Vec<u8>, CodecError>;

    /// Reads bytes back: calls `read` with a deserializer over them.
    fn decode(
        &self,
        bytes: &[u8],
        read: &mut dyn FnMut(&mut dyn Deserializer<'_>) -> Result<(), erased_serde::Error>,
    ) -> Result<(), CodecError>;

    /// A digest that is the same for equal values, by which a repeated start is recognised.
    ///
    /// The default digests the bytes. A codec that may write one value in several ways, as JSON
    /// does for maps without order, brings them into one form first.
    fn digest(&self, bytes: &[u8]) -> [u8; 32] {
        Sha256::digest(bytes).into()
    }
}

/// Why a value cannot be written or read.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
#[error("{0}")]
pub struct CodecError(pub String);

impl CodecError {
    /// An error in the words of another.
    pub fn new(error: impl std::fmt::Display) -> Self {
        Self(error.to_string())
    }
}

/// The default codec: JSON text, nested at most 64 deep. Floats that are no number or infinite are
/// refused.
#[derive(Clone, Copy, Debug, Default)]
pub struct JsonCodec;

impl Codec for JsonCodec {
    fn tag(&self) -> &'static str {
        "json"
    }

    fn encode(&self, value: &dyn Serialize) -> Result<Vec<u8>, CodecError> {
        let bytes = serde_json::to_vec(value).map_err(CodecError::new)?;
        // A float that is no number is written as `null`, like much else that may be meant.
        let has_null = bytes.windows(4).any(|word| word == b"null");
        if let Some(float) = has_null.then(|| non_finite::find(value)).flatten() {
            return Err(CodecError(format!("{float}, which JSON cannot hold")));
        }
        // Readers refuse deep nesting, so it is refused before it is stored.
        let depth = depth(&bytes);
        if depth > PAYLOAD_DEPTH_MAX {
            let limit = PAYLOAD_DEPTH_MAX;
            return Err(CodecError(format!("nested {depth} deep, the limit is {limit}")));
        }
        Ok(bytes)
    }

    fn decode(
        &self,
        bytes: &[u8],
        read: &mut dyn FnMut(&mut dyn Deserializer<'_>) -> Result<(), erased_serde::Error>,
    ) -> Result<(), CodecError> {
        let mut json = serde_json::Deserializer::from_slice(bytes);
        read(&mut <dyn Deserializer<'_>>::erase(&mut json)).map_err(CodecError::new)?;
        json.end().map_err(CodecError::new)
    }

    fn digest(&self, bytes: &[u8]) -> [u8; 32] {
        let mut sorted = String::with_capacity(bytes.len());
        match serde_json::from_slice(bytes).and_then(|json| write_sorted(json, &mut sorted)) {
            Ok(()) => Sha256::digest(sorted.as_bytes()).into(),
            Err(_) => Sha256::digest(bytes).into(),
        }
    }
}

/// Writes JSON text with the members of objects in the order of their names. Everything else
/// stays as it was written: a large number that went through a float would lose digits.
fn write_sorted(json: &RawValue, sorted: &mut String) -> serde_json::Result<()> {
    let text = json.get();
    if text.starts_with('{') {
        let members: BTreeMap<String, &RawValue> = serde_json::from_str(text)?;
        sorted.push('{');
        for (name, value) in members {
            sorted.push_str(&serde_json::to_string(&name)?);
            sorted.push(':');
            write_sorted(value, sorted)?;
            sorted.push(',');
        }
        sorted.push('}');
    } else if text.starts_with('[') {
        let values: Vec<&RawValue> = serde_json::from_str(text)?;
        sorted.push('[');
        for value in values {
            write_sorted(value, sorted)?;
            sorted.push(',');
        }
        sorted.push(']');
    } else {
        sorted.push_str(text);
    }
    Ok(())
}

/// How deep arrays and objects are nested in JSON text.
fn depth(json: &[u8]) -> usize {
    let (mut depth, mut deepest) = (0_usize, 0);
    let (mut in_string, mut escaped) = (false, false);
    for byte in json {
        match byte {
            _ if escaped => escaped = false,
            b'\\' if in_string => escaped = true,
            b'"' => in_string = !in_string,
            b'[' | b'{' if !in_string => {
                depth += 1;
                deepest = deepest.max(depth);
            }
            b']' | b'}' if !in_string => depth = depth.saturating_sub(1),
            _ => {}
        }
    }
    deepest
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn nesting_is_counted_outside_strings_only() {
        assert_eq!(depth(br#"{"a":[[1]],"b":"[[[[\"[["}"#), 3);
        assert_eq!(depth(b"7"), 0);
    }

    #[test]
    fn too_deep_a_value_is_refused_before_it_is_stored() {
        // FD3
        let mut value = serde_json::json!(1);
        for _ in 0..PAYLOAD_DEPTH_MAX {
            value = serde_json::json!([value]);
        }
        assert!(JsonCodec.encode(&value).is_ok());
        assert!(JsonCodec.encode(&serde_json::json!([value])).is_err());
    }

    #[test]
    fn maps_without_order_digest_alike() {
        // FB7
        assert_eq!(JsonCodec.digest(br#"{"a":1,"b":2}"#), JsonCodec.digest(br#"{"b":2,"a":1}"#));
        assert_ne!(JsonCodec.digest(br#"{"a":1}"#), JsonCodec.digest(br#"{"a":2}"#));
        assert_ne!(JsonCodec.digest(b"[1,[2]]"), JsonCodec.digest(b"[[1,2]]"));
    }

    #[test]
    fn large_numbers_digest_by_their_last_digit() {
        // FB7, FD3
        let digest = |n: u128| JsonCodec.digest(n.to_string().as_bytes());
        assert_ne!(digest(1 << 100), digest((1 << 100) + 1));
    }
}
