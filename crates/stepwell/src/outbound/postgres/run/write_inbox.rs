//! Waits and signals of decided runs. Few decisions bring any, and then a statement per kind.

use stepwell_core::run::Extras;

use super::super::rows::signal::{ConsumedArrays, SignalArrays};
use super::super::rows::wait::{OpenedWait, WaitArrays};
use super::super::rows::{TaskKeys, corrupt};
use super::super::session::{PgResult, first_error};
use super::super::sql::{self, Sql};
use super::write::{Payloads, RunUpdate};
use super::write_rows::RowWriter;

const DELETE_WAITS: Sql = sql::WAIT.named("delete_waits");
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
            self.insert_waits(),
            self.insert_signals(),
            self.consume_signals(),
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
}
