//! Payloads, shown only to those who ask for them.

use std::borrow::Cow;

use serde::Serialize;
use serde_json::value::RawValue;

use super::picture::RunPicture;
use crate::cli::pretty_json::{compact, pretty};
use crate::cli::words::printable;
use crate::cli::{Failure, Output, Tone};
use crate::ports::{Codec, JsonCodec, Payload};

/// A payload as JSON: what another codec wrote is told by its tag and its size.
#[derive(Serialize)]
pub(super) struct PayloadRecord<'payload> {
    codec: &'payload str,
    n_bytes: usize,
    /// Digit for digit as it is stored.
    #[serde(skip_serializing_if = "Option::is_none")]
    value: Option<Cow<'payload, RawValue>>,
}

impl<'payload> PayloadRecord<'payload> {
    pub(super) fn new(payload: &'payload Payload) -> Self {
        let value = json(payload).map(on_one_line);
        Self { codec: &payload.codec, n_bytes: payload.bytes.len(), value }
    }
}

/// A record takes one line, however its payload was written.
fn on_one_line(json: &RawValue) -> Cow<'_, RawValue> {
    if !json.get().contains(['\n', '\r']) {
        return Cow::Borrowed(json);
    }
    let compact = RawValue::from_string(compact(json.get()));
    compact.map_or(Cow::Borrowed(json), Cow::Owned)
}

/// The payload, if it is JSON.
fn json(payload: &Payload) -> Option<&RawValue> {
    let is_json = payload.codec == JsonCodec.tag();
    serde_json::from_slice(&payload.bytes).ok().filter(|_| is_json)
}

pub(super) fn print(picture: &RunPicture, output: Output) -> Result<(), Failure> {
    if let Some(input) = &picture.input {
        print_one("Input", input, output)?;
    }
    for task in &picture.tasks {
        let step = printable(&task.step);
        // Whoever gives nothing has the empty payload, which is not worth a line.
        if let Some(payload) = task.output.as_ref().filter(|payload| !payload.codec.is_empty()) {
            print_one(&format!("Output of {step}"), payload, output)?;
        }
    }
    Ok(())
}

fn print_one(title: &str, payload: &Payload, output: Output) -> Result<(), Failure> {
    output.line("")?;
    output.line(&output.paint(Tone::Strong, title))?;
    if let Some(json) = json(payload) {
        return Ok(output.line(&printable(&pretty(json.get())))?);
    }
    let (n_bytes, codec) = (payload.bytes.len(), printable(&payload.codec));
    Ok(output.line(&format!("{n_bytes} bytes, written by the codec {codec:?}"))?)
}
