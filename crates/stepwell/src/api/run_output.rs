//! How a run's output is read from what its step left.

use serde::de::DeserializeOwned;
use serde_json::Value;
use stepwell_core::code::Code;

use super::step_ref::Kind;
use crate::engine::decode;
use crate::error::Error;
use crate::ports::{Codec, Payload};

/// How a run's output is read from its step's payload.
pub(crate) type ReadOutput<O> = fn(&dyn Codec, Option<&Payload>) -> Result<O, Error>;

/// What errors call the output of a run.
const RUN_OUTPUT: &str = "the run's output";

#[expect(clippy::unnecessary_wraps, reason = "one of several readers with one signature")]
pub(super) fn read_nothing(_: &dyn Codec, _: Option<&Payload>) -> Result<(), Error> {
    Ok(())
}

pub(super) fn read_kind<T, K>(
    codec: &dyn Codec,
    payload: Option<&Payload>,
) -> Result<K::Output<T>, Error>
where
    T: DeserializeOwned + Send + 'static,
    K: Kind,
{
    let value = payload.map(|payload| decode(codec, RUN_OUTPUT, payload)).transpose()?;
    K::output(value).ok_or_else(no_output)
}

pub(super) fn read_required<T: DeserializeOwned>(
    codec: &dyn Codec,
    payload: Option<&Payload>,
) -> Result<T, Error> {
    decode(codec, RUN_OUTPUT, payload.ok_or_else(no_output)?)
}

pub(super) fn read_value(codec: &dyn Codec, payload: Option<&Payload>) -> Result<Value, Error> {
    payload.map_or(Ok(Value::Null), |payload| decode(codec, RUN_OUTPUT, payload))
}

fn no_output() -> Error {
    Error::refused(Code::StepSkipped, "the step that gives the run's output has none")
}
