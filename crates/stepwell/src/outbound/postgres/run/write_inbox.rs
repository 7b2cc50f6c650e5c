//! Waits, signals and memos of decided runs. Few decisions bring any, and then a statement per
//! kind.

use stepwell_core::run::Extras;

use super::super::rows::memo::{MemoArrays, MemoKeys, MemoOf};
use super::super::rows::signal::{ConsumedArrays, SignalArrays};
use super::super::rows::wait::{OpenedWait, WaitArrays};
use super::super::rows::{TaskKeys, corrupt};
use super::super::session::{PgResult, first_error};
use super::super::sql::{self, Sql};
use super::write::{Payloads, RunUpdate};
use super::write_rows::RowWriter;

const DELETE_WAITS: Sql = sql::WAIT.named("delete_waits");
const DELETE_ENDED_WAITS: Sql = sql::WAIT.named("delete_ended_waits");
const CLEAR_MEMOS: Sql = sql::MEMO.named("clear_memos");
const FORGET_MEMOS: Sql = sql::MEMO.named("forget_memos");
const PUT_MEMOS: Sql = sql::MEMO.named("put_memos");
const INSERT_WAITS: Sql = sql::WAIT.named("insert_waits");
const INSERT_SIGNALS: Sql = sql::SIGNAL.named("insert_signals");
const CONSUME_SIGNALS: Sql = sql::SIGNAL.named("consume_signals");

impl RowWriter<'_> {
    /// Writes waits and signals. Waits that are over go first: the next one of the same task takes
    /// their place.
    pub(super) async fn write_inbox(&self) -> PgResult<()> {
        if self.extras().next().is_none() {
            return Ok(());
        }
        let answers = tokio::join!(
            biased;
            self.delete_waits(),
            self.delete_ended_waits(),
            self.insert_waits(),
            self.insert_signals(),
            self.consume_signals(),
            self.delete_memos(),
            self.put_memos(),
        );
        first_error(answers.into())
    }

    fn extras(&self) -> impl Iterator<Item = (&RunUpdate, &Extras)> {
        self.updates.iter().filter_map(|update| Some((update, update.changes.extras.as_deref()?)))
    }

    async fn delete_waits(&self) -> PgResult<()> {
        let closed = self.extras().flat_map(|(update, extras)| {
            extras.waits_closed.iter().map(|node| (update.run.key, *node))
        });
        let closed = TaskKeys::of(closed);
        if closed.is_empty() {
            return Ok(());
        }
        self.session.run(DELETE_WAITS, &closed.params()).await
    }

    async fn delete_ended_waits(&self) -> PgResult<()> {
        let ended = self.extras().flat_map(|(update, extras)| {
            let run = update.run.key;
            extras.waits_ended.iter().map(move |(node, key)| (run, *node, key.as_str()))
        });
        let ended = MemoKeys::of(ended);
        if ended.is_empty() {
            return Ok(());
        }
        self.session.run(DELETE_ENDED_WAITS, &ended.params()).await
    }

    async fn insert_waits(&self) -> PgResult<()> {
        let opened = self.extras().flat_map(|(update, extras)| {
            let (run, tenant_no) = (update.run.key, update.tenant_no);
            let definition = update.run.definition;
            let wait = move |row| OpenedWait { run, tenant_no, definition, row };
            extras.waits_opened.iter().map(wait)
        });
        let arrays = WaitArrays::of(opened)?;
        if arrays.is_empty() {
            return Ok(());
        }
        self.session.run(INSERT_WAITS, &arrays.params()).await
    }

    async fn insert_signals(&self) -> PgResult<()> {
        let mut arrays = SignalArrays::default();
        for (update, extras) in self.extras() {
            for row in &extras.signals_stored {
                let sent = match self.payloads {
                    Payloads::Signals(payloads) => payloads.get(&(update.run.key, row.number)),
                    _ => None,
                };
                let payload = sent.ok_or_else(|| corrupt("a signal has no payload"))?;
                arrays.push(update.run.key, row, payload)?;
            }
        }
        if arrays.is_empty() {
            return Ok(());
        }
        self.session.run(INSERT_SIGNALS, &arrays.params()).await
    }

    async fn consume_signals(&self) -> PgResult<()> {
        let consumed = self.extras().flat_map(|(update, extras)| {
            let run = update.run.key;
            extras.signals_consumed.iter().map(move |(number, node)| (run, *number, *node))
        });
        let arrays = ConsumedArrays::of(consumed);
        if arrays.is_empty() {
            return Ok(());
        }
        self.session.run(CONSUME_SIGNALS, &arrays.params()).await
    }

    /// Deletes memos that are forgotten, those of whole functions first.
    async fn delete_memos(&self) -> PgResult<()> {
        let cleared = self.extras().flat_map(|(update, extras)| {
            extras.memos_cleared.iter().map(|node| (update.run.key, *node))
        });
        let cleared = TaskKeys::of(cleared);
        let forgotten = self.extras().flat_map(|(update, extras)| {
            let run = update.run.key;
            extras.memos_forgotten.iter().map(move |(node, key)| (run, *node, key.as_str()))
        });
        let forgotten = MemoKeys::of(forgotten);
        if !cleared.is_empty() {
            self.session.run(CLEAR_MEMOS, &cleared.params()).await?;
        }
        if !forgotten.is_empty() {
            self.session.run(FORGET_MEMOS, &forgotten.params()).await?;
        }
        Ok(())
    }

    /// Stores memos; that of a round has its input beside it.
    async fn put_memos(&self) -> PgResult<()> {
        let mut arrays = MemoArrays::default();
        for (update, extras) in self.extras() {
            let run = update.run.key;
            for row in &extras.memos {
                let of = MemoOf { run, node: row.node, claim: None };
                let input = self.payloads.of_round(run, row);
                arrays.push(of, row, input)?;
            }
        }
        if arrays.is_empty() {
            return Ok(());
        }
        self.session.run(PUT_MEMOS, &arrays.params()).await
    }
}
