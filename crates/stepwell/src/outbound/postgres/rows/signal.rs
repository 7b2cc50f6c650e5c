//! Rows of `signal`.

use stepwell_core::id::{Node, RunKey};
use stepwell_core::run::SignalRow;
use tokio_postgres::Row;
use uuid::Uuid;

use super::cells::{Cells, Columns, columns, selected};
use super::payload::payload;
use super::{Param, Read, corrupt, int, int32, json, key};
use crate::ports::{Payload, StoredSignal};

columns! {
    /// The columns of `signal`, but for its payload, which only those read who execute tasks.
    SIGNAL: Col = "signal" {
        key Run "run" "uuid",
        key Number "number" "bigint",
        kept Name "name" "text",
        kept Key "key" "text",
        kept Attributes "attributes" "text",
        kept Digest "digest" "bytea",
        kept SentAt "sent_at" "bigint",
        changed ConsumedBy "consumed_by" "int",
    }
}

selected! {
    /// Read with a signal.
    Joined { Codec, Bytes, }
}

/// A signal with its run.
pub(crate) fn read(row: &Row) -> Read<(RunKey, SignalRow)> {
    let cells = Cells::of(row);
    let consumed_by: Option<i32> = cells.get(Col::ConsumedBy)?;
    let consumed_by = consumed_by.map(|node| u32::try_from(node).map(Node)).transpose();
    let digest: &[u8] = cells.get(Col::Digest)?;
    let signal = SignalRow {
        number: cells.unsigned(Col::Number)?,
        name: cells.get(Col::Name)?,
        key: cells.get(Col::Key)?,
        attributes: cells.json(Col::Attributes, "attributes")?,
        digest: digest.try_into().map_err(|_| corrupt("a digest has no 32 bytes"))?,
        sent_at: cells.time(Col::SentAt)?,
        consumed_by: consumed_by.map_err(|_| corrupt("a signal's receiver is no number"))?,
    };
    Ok((cells.run_key(Col::Run)?, signal))
}

/// A signal with its payload.
pub(crate) fn read_stored(row: &Row) -> Read<StoredSignal> {
    let (_, signal) = read(row)?;
    let payload = payload(Cells::of(row).behind::<Col>(), Joined::Codec, Joined::Bytes)?;
    let payload = payload.of_signal(&signal.name);
    Ok(StoredSignal { row: signal, payload })
}

selected! { Brought { Run, Number, Name, Codec, Bytes, } }

/// What a signal brought, by run and number.
pub(crate) fn read_brought(row: &Row) -> Read<((RunKey, u64), Payload)> {
    let cells = Cells::of(row);
    let payload = payload(cells, Brought::Codec, Brought::Bytes)?;
    let number = cells.unsigned(Brought::Number)?;
    let name: &str = cells.get(Brought::Name)?;
    Ok(((cells.run_key(Brought::Run)?, number), payload.of_signal(name)))
}

/// Signals by run and key, as two lists.
pub(crate) struct SignalKeys<'k> {
    runs: Vec<Uuid>,
    keys: Vec<&'k str>,
}

impl<'k> SignalKeys<'k> {
    pub(crate) fn of(signals: impl IntoIterator<Item = (RunKey, &'k str)>) -> Self {
        let (runs, keys) = signals.into_iter().map(|(run, name)| (key(run), name)).unzip();
        Self { runs, keys }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn params(&self) -> [Param<'_>; 2] {
        [&self.runs, &self.keys]
    }
}

/// Signals by run and number, as two lists.
pub(crate) struct SignalNumbers {
    runs: Vec<Uuid>,
    numbers: Vec<i64>,
}

impl SignalNumbers {
    pub(crate) fn of(signals: impl IntoIterator<Item = (RunKey, u64)>) -> Self {
        let (runs, numbers) = signals.into_iter().map(|(run, no)| (key(run), int(no))).unzip();
        Self { runs, numbers }
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.runs.is_empty()
    }

    pub(crate) fn params(&self) -> [Param<'_>; 2] {
        [&self.runs, &self.numbers]
    }
}

/// Signals with their payloads, as lists of values.
#[derive(Default)]
pub(crate) struct SignalArrays<'r> {
    run: Vec<Uuid>,
    number: Vec<i64>,
    name: Vec<&'r str>,
    key: Vec<&'r str>,
    attributes: Vec<String>,
    digest: Vec<&'r [u8]>,
    sent_at: Vec<i64>,
    consumed_by: Vec<Option<i32>>,
    codec: Vec<&'r str>,
    bytes: Vec<&'r [u8]>,
}

impl<'r> SignalArrays<'r> {
    pub(crate) fn push(
        &mut self,
        run: RunKey,
        row: &'r SignalRow,
        payload: &'r Payload,
    ) -> Read<()> {
        self.run.push(key(run));
        self.number.push(int(row.number));
        self.name.push(&row.name);
        self.key.push(&row.key);
        self.attributes.push(json(&row.attributes)?);
        self.digest.push(&row.digest);
        self.sent_at.push(row.sent_at.as_micros());
        self.consumed_by.push(row.consumed_by.map(|node| int32(node.0)));
        self.codec.push(&payload.codec);
        self.bytes.push(&payload.bytes);
        Ok(())
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    pub(crate) fn params(&self) -> Vec<Param<'_>> {
        let mut params: Vec<Param<'_>> =
            Col::ALL.iter().map(|column| self.param(*column)).collect();
        params.extend::<[Param<'_>; 2]>([&self.codec, &self.bytes]);
        params
    }

    fn param(&self, column: Col) -> Param<'_> {
        match column {
            Col::Run => &self.run,
            Col::Number => &self.number,
            Col::Name => &self.name,
            Col::Key => &self.key,
            Col::Attributes => &self.attributes,
            Col::Digest => &self.digest,
            Col::SentAt => &self.sent_at,
            Col::ConsumedBy => &self.consumed_by,
        }
    }
}

/// Who gets signals that were stored before, as lists of values.
#[derive(Default)]
pub(crate) struct ConsumedArrays {
    run: Vec<Uuid>,
    number: Vec<i64>,
    consumed_by: Vec<i32>,
}

impl ConsumedArrays {
    pub(crate) fn of(consumed: impl Iterator<Item = (RunKey, u64, Node)>) -> Self {
        let mut arrays = Self::default();
        for (run, number, node) in consumed {
            arrays.run.push(key(run));
            arrays.number.push(int(number));
            arrays.consumed_by.push(int32(node.0));
        }
        arrays
    }

    pub(crate) fn is_empty(&self) -> bool {
        self.run.is_empty()
    }

    /// The columns of the key, and the one that changes.
    pub(crate) fn params(&self) -> [Param<'_>; 3] {
        [&self.run, &self.number, &self.consumed_by]
    }
}
