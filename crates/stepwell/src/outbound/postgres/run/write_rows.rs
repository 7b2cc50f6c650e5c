//! The rows of decided runs: a statement per table, all sent in one go.

use std::collections::{BTreeMap, HashMap, HashSet};

use stepwell_core::id::{Node, RunKey, WorkerId};
use stepwell_core::run::{TaskRow, Timer};
use uuid::Uuid;

use super::super::rows::attempt::AttemptArrays;
use super::super::rows::event::EventArrays;
use super::super::rows::payload::{InputArrays, OutputArrays};
use super::super::rows::run::RunArrays;
use super::super::rows::task::TaskArrays;
use super::super::rows::timer::TimerArrays;
use super::super::rows::{TaskKeys, token};
use super::super::session::{PgResult, Session, first_error};
use super::super::sql::{self, Sql};
use super::write::{Payloads, RunUpdate};
use crate::ports::Payload;

const UPDATE_RUNS: Sql = sql::RUN.named("update_runs");
const INSERT_INPUTS: Sql = sql::PAYLOAD.named("insert_inputs");
const INSERT_OUTPUTS: Sql = sql::PAYLOAD.named("insert_outputs");
const INSERT_TASKS: Sql = sql::TASK.named("insert_tasks");
const UPDATE_TASKS: Sql = sql::TASK.named("update_tasks");
const INSERT_ATTEMPTS: Sql = sql::ATTEMPT.named("insert_attempts");
const INSERT_EVENTS: Sql = sql::EVENT.named("insert_events");
const DELETE_TIMERS: Sql = sql::TIMER.named("delete_timers");
const INSERT_TIMERS: Sql = sql::TIMER.named("insert_timers");
const END_CLAIMS: Sql = sql::WORKER.named("end_claims");

/// Decided runs whose rows are written in a transaction.
pub(super) struct RowWriter<'w> {
    pub(super) session: &'w Session,
    pub(super) updates: &'w [RunUpdate],
    pub(super) payloads: Payloads<'w>,
    /// The numbers of workers that hold claims, or whose attempts ended.
    pub(super) workers: &'w HashMap<WorkerId, i64>,
}

impl RowWriter<'_> {
    /// Writes all rows of the runs. Fresh runs are inserted already.
    pub(super) async fn write(&self) -> PgResult<()> {
        let runs = async { if self.are_fresh() { Ok(()) } else { self.update_runs().await } };
        let answers = tokio::join!(
            biased;
            runs,
            self.insert_payloads(),
            self.write_tasks(),
            self.insert_attempts(),
            self.insert_events(),
            self.delete_timers(),
            self.insert_timers(),
            self.write_inbox(),
        );
        first_error(answers.into())
    }

    /// Counts down what workers hold. Last of all, so that whoever holds these rows waits for
    /// nobody.
    pub(super) async fn end_claims(&self) -> PgResult<()> {
        let mut ended: BTreeMap<Uuid, i32> = BTreeMap::new();
        for (_, claim) in self.updates.iter().flat_map(|update| &update.changes.claims_ended) {
            *ended.entry(token(claim.token)).or_default() += 1;
        }
        if ended.is_empty() {
            return Ok(());
        }
        let (tokens, counts): (Vec<Uuid>, Vec<i32>) = ended.into_iter().unzip();
        self.session.run(END_CLAIMS, &[&tokens, &counts]).await
    }

    fn are_fresh(&self) -> bool {
        matches!(self.payloads, Payloads::Inputs(_))
    }

    async fn update_runs(&self) -> PgResult<()> {
        if self.updates.is_empty() {
            return Ok(());
        }
        let arrays = RunArrays::of(self.updates.iter().map(|update| &update.run))?;
        self.session.run(UPDATE_RUNS, &arrays.params()).await
    }

    async fn insert_payloads(&self) -> PgResult<()> {
        match self.payloads {
            Payloads::None
            | Payloads::Inputs([])
            | Payloads::Outputs([])
            // Those lie with the signals.
            | Payloads::Signals(_) => Ok(()),
            Payloads::Inputs(inputs) => {
                self.session.run(INSERT_INPUTS, &InputArrays::of(inputs).params()).await
            }
            Payloads::Outputs(outputs) => {
                self.insert_outputs(outputs).await
            }
        }
    }

    /// Inserts outputs. The input of a round is none: it lies with its memo.
    async fn insert_outputs(&self, outputs: &[(RunKey, Node, &Payload)]) -> PgResult<()> {
        let extras = self.updates.iter().filter_map(|update| {
            Some((update.run.key, &update.changes.extras.as_ref()?.memos_cleared))
        });
        let rounds: Vec<(RunKey, Node)> =
            extras.flat_map(|(run, nodes)| nodes.iter().map(move |node| (run, *node))).collect();
        if rounds.is_empty() {
            return self.session.run(INSERT_OUTPUTS, &OutputArrays::of(outputs).params()).await;
        }
        let is_output =
            |(run, node, _): &&(RunKey, Node, &Payload)| !rounds.contains(&(*run, *node));
        let outputs: Vec<_> = outputs.iter().filter(is_output).copied().collect();
        if outputs.is_empty() {
            return Ok(());
        }
        self.session.run(INSERT_OUTPUTS, &OutputArrays::of(&outputs).params()).await
    }

    async fn write_tasks(&self) -> PgResult<()> {
        let (mut inserted, mut known) = (Vec::new(), Vec::new());
        for update in self.updates {
            for (run, task) in update.touched() {
                let is_new = self.are_fresh() || update.changes.is_inserted(task.node);
                if is_new { &mut inserted } else { &mut known }.push((run, task));
            }
        }
        let answers = tokio::join!(
            biased;
            self.write_tasks_by(INSERT_TASKS, &inserted),
            self.write_tasks_by(UPDATE_TASKS, &known),
        );
        first_error(answers.into())
    }

    async fn write_tasks_by(&self, sql: Sql, tasks: &[(RunKey, &TaskRow)]) -> PgResult<()> {
        if tasks.is_empty() {
            return Ok(());
        }
        self.session.run(sql, &TaskArrays::of(tasks, self.workers)?.params()).await
    }

    async fn insert_attempts(&self) -> PgResult<()> {
        let attempts = self.updates.iter().flat_map(|update| {
            update.changes.attempts.iter().map(|attempt| (update.run.key, attempt))
        });
        let arrays = AttemptArrays::of(attempts, self.workers)?;
        if arrays.is_empty() {
            return Ok(());
        }
        self.session.run(INSERT_ATTEMPTS, &arrays.params()).await
    }

    async fn insert_events(&self) -> PgResult<()> {
        let events = self
            .updates
            .iter()
            .flat_map(|update| update.changes.events.iter().map(|event| (update.run.key, event)));
        let arrays = EventArrays::of(events)?;
        if arrays.is_empty() {
            return Ok(());
        }
        self.session.run(INSERT_EVENTS, &arrays.params()).await
    }

    async fn delete_timers(&self) -> PgResult<()> {
        let cleared = self.updates.iter().flat_map(|update| {
            update.changes.all_timers_cleared().map(|node| (update.run.key, node))
        });
        let cleared = TaskKeys::of(cleared);
        if cleared.is_empty() {
            return Ok(());
        }
        self.session.run(DELETE_TIMERS, &cleared.params()).await
    }

    async fn insert_timers(&self) -> PgResult<()> {
        let now = self.session.now();
        let timers = self.updates.iter().flat_map(|update| {
            let run = update.run.key;
            let timers = last_of_each_node(&update.changes.timers).into_iter();
            timers.map(move |timer| (run, timer.node, now.after(timer.after)))
        });
        let arrays = TimerArrays::of(timers);
        if arrays.is_empty() {
            return Ok(());
        }
        self.session.run(INSERT_TIMERS, &arrays.params()).await
    }
}

/// The timers that stand, in order: of several that one decision after the other set for a node,
/// the last one does.
fn last_of_each_node(timers: &[Timer]) -> Vec<&Timer> {
    let mut seen = HashSet::with_capacity(timers.len());
    let mut last: Vec<&Timer> =
        timers.iter().rev().filter(|timer| seen.insert(timer.node)).collect();
    last.reverse();
    last
}
