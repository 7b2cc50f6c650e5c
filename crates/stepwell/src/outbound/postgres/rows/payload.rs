//! Rows of `input` and `output`.

use std::borrow::Cow;
use std::collections::HashMap;

use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::Resumed;
use tokio_postgres::Row;
use uuid::Uuid;

use super::cells::{Cells, Columns, columns, selected};
use super::{Param, Read, int32, key};
use crate::ports::Payload;

columns! {
    /// The columns of `input`.
    INPUT: InputCol = "input" {
        key Run "run" "uuid",
        kept Codec "codec" "text",
        kept Bytes "bytes" "bytea",
    }
}

columns! {
    /// The columns of `output`.
    OUTPUT: OutputCol = "output" {
        key Run "run" "uuid",
        key Node "node" "int",
        kept Codec "codec" "text",
        kept Bytes "bytes" "bytea",
    }
}

/// Inputs by run.
pub(crate) fn read_inputs(rows: &[Row]) -> Read<HashMap<RunKey, Payload>> {
    let read = |row: &Row| {
        let cells = Cells::of(row);
        let input = payload(cells, InputCol::Codec, InputCol::Bytes)?;
        Ok((cells.run_key(InputCol::Run)?, input))
    };
    rows.iter().map(read).collect()
}

/// The output of a task.
pub(crate) fn read_output(row: &Row) -> Read<((RunKey, Node), Payload)> {
    let cells = Cells::of(row);
    let task = (cells.run_key(OutputCol::Run)?, cells.node(OutputCol::Node)?);
    Ok((task, payload(cells, OutputCol::Codec, OutputCol::Bytes)?))
}

selected! {
    /// Read with what a completed task left.
    Left { Signal, ResumedBy, }
}

/// What a completed task left: its output, or the signal that it got. One without an output of its
/// own has the empty payload.
pub(crate) fn read_left(row: &Row) -> Read<(Node, Payload)> {
    read_left_of(Cells::of(row))
}

/// The same, where there may be no such task.
pub(super) fn read_left_of_some(cells: Cells<'_>) -> Read<Option<(Node, Payload)>> {
    let run: Option<Uuid> = cells.get(OutputCol::Run)?;
    run.map(|_| read_left_of(cells)).transpose()
}

fn read_left_of(cells: Cells<'_>) -> Read<(Node, Payload)> {
    let (codec, signal): (Option<&str>, Option<&str>) =
        (cells.get(OutputCol::Codec)?, cells.behind::<OutputCol>().get(Left::Signal)?);
    let resumed = cells.behind::<OutputCol>().resumed(Left::ResumedBy)?;
    let left = match (codec, signal) {
        (None, _) if resumed == Some(Resumed::TimedOut) => Payload::timed_out(),
        (None, _) => Payload::empty(),
        (Some(_), None) => payload(cells, OutputCol::Codec, OutputCol::Bytes)?,
        (Some(_), Some(signal)) => {
            payload(cells, OutputCol::Codec, OutputCol::Bytes)?.of_signal(signal)
        }
    };
    Ok((cells.node(OutputCol::Node)?, left))
}

pub(super) fn payload<C: Columns>(cells: Cells<'_>, codec: C, bytes: C) -> Read<Payload> {
    let (codec, bytes): (String, &[u8]) = (cells.get(codec)?, cells.get(bytes)?);
    Ok(Payload::new(Cow::Owned(codec), bytes))
}

/// Inputs as lists of values.
#[derive(Default)]
pub(crate) struct InputArrays<'p> {
    run: Vec<Uuid>,
    codec: Vec<&'p str>,
    bytes: Vec<&'p [u8]>,
}

impl<'p> InputArrays<'p> {
    pub(crate) fn of(inputs: &[(RunKey, &'p Payload)]) -> Self {
        Self {
            run: inputs.iter().map(|(run, _)| key(*run)).collect(),
            codec: inputs.iter().map(|(_, input)| &*input.codec).collect(),
            bytes: inputs.iter().map(|(_, input)| &*input.bytes).collect(),
        }
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        let param = |column: &InputCol| -> Param<'_> {
            match column {
                InputCol::Run => &self.run,
                InputCol::Codec => &self.codec,
                InputCol::Bytes => &self.bytes,
            }
        };
        InputCol::ALL.iter().map(param).collect()
    }
}

/// Outputs as lists of values.
#[derive(Default)]
pub(crate) struct OutputArrays<'p> {
    run: Vec<Uuid>,
    node: Vec<i32>,
    codec: Vec<&'p str>,
    bytes: Vec<&'p [u8]>,
}

impl<'p> OutputArrays<'p> {
    pub(crate) fn of(outputs: &[(RunKey, Node, &'p Payload)]) -> Self {
        Self {
            run: outputs.iter().map(|(run, ..)| key(*run)).collect(),
            node: outputs.iter().map(|(_, node, _)| int32(node.0)).collect(),
            codec: outputs.iter().map(|(.., output)| &*output.codec).collect(),
            bytes: outputs.iter().map(|(.., output)| &*output.bytes).collect(),
        }
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        let param = |column: &OutputCol| -> Param<'_> {
            match column {
                OutputCol::Run => &self.run,
                OutputCol::Node => &self.node,
                OutputCol::Codec => &self.codec,
                OutputCol::Bytes => &self.bytes,
            }
        };
        OutputCol::ALL.iter().map(param).collect()
    }
}
