//! What was decided, as columns: one statement per table, however many runs there are.

use std::collections::HashMap;

use stepwell_core::id::{Node, RunKey, WorkerId};
use stepwell_core::run::{AttemptRow, Phase, TaskRow};
use stepwell_core::time::Timestamp;
use tokio_postgres::types::ToSql;
use uuid::Uuid;

use super::hand_over::Holder;
use super::rows::{int, int32, json, key, token};
use super::statements;
use super::transaction::{Params, Transaction, first_error};
use super::write::{Payloads, Written};
use crate::ports::StoreError;

impl Transaction {
    pub(super) async fn write_payloads(&self, payloads: Payloads<'_>) -> Result<(), StoreError> {
        match payloads {
            Payloads::None | Payloads::Inputs([]) | Payloads::Outputs([]) => Ok(()),
            Payloads::Inputs(inputs) => {
                let keys: Vec<Uuid> = inputs.iter().map(|(run, _)| key(*run)).collect();
                let codecs: Vec<&str> = inputs.iter().map(|(_, input)| &*input.codec).collect();
                let bytes: Vec<&[u8]> = inputs.iter().map(|(_, input)| &*input.bytes).collect();
                self.run(statements::INSERT_INPUTS, &[&keys, &codecs, &bytes]).await
            }
            Payloads::Outputs(outputs) => {
                let runs: Vec<Uuid> = outputs.iter().map(|(run, ..)| key(*run)).collect();
                let nodes: Vec<i32> = outputs.iter().map(|(_, node, _)| int32(node.0)).collect();
                let codecs: Vec<&str> = outputs.iter().map(|(.., output)| &*output.codec).collect();
                let bytes: Vec<&[u8]> = outputs.iter().map(|(.., output)| &*output.bytes).collect();
                self.run(statements::INSERT_OUTPUTS, &[&runs, &nodes, &codecs, &bytes]).await
            }
        }
    }

    pub(super) async fn write_all_tasks(
        &self,
        written: &[Written],
        are_fresh: bool,
        holder: Holder,
    ) -> Result<(), StoreError> {
        let touched = written.iter().flat_map(Written::touched);
        if are_fresh {
            return self
                .write_tasks(statements::INSERT_TASKS, &touched.collect::<Vec<_>>(), Some(holder))
                .await;
        }
        let (inserted, known): (Vec<_>, Vec<_>) =
            touched.partition(|(_, task)| task.node == Node::ON_FAILURE);
        let answers = tokio::join!(
            biased;
            self.write_tasks(statements::UPSERT_TASKS, &inserted, None),
            self.write_tasks(statements::UPDATE_TASKS, &known, Some(holder)),
        );
        first_error(answers.into())
    }

    pub(super) async fn update_runs(&self, written: &[Written]) -> Result<(), StoreError> {
        if written.is_empty() {
            return Ok(());
        }
        let runs = || written.iter().map(|written| &written.run);
        let keys: Vec<Uuid> = runs().map(|run| key(run.key)).collect();
        let status: Vec<i16> = runs().map(|run| run.status as i16).collect();
        let n_open: Vec<i32> = runs().map(|run| int32(run.n_open)).collect();
        let n_failed: Vec<i32> = runs().map(|run| int32(run.n_failed)).collect();
        let n_cancelled: Vec<i32> = runs().map(|run| int32(run.n_cancelled)).collect();
        let cancelled: Vec<bool> = runs().map(|run| run.cancelled).collect();
        let failure: Vec<Option<String>> = runs()
            .map(|run| run.failure.as_ref().map(json).transpose())
            .collect::<Result<_, _>>()?;
        let next_event: Vec<i64> = runs().map(|run| int(run.next_event)).collect();
        let end_event: Vec<Option<i64>> = runs().map(|run| run.end_event.map(int)).collect();
        let ended_at: Vec<Option<i64>> =
            runs().map(|run| run.ended_at.map(Timestamp::as_micros)).collect();
        self.run(
            statements::UPDATE_RUNS,
            &[
                &keys,
                &status,
                &n_open,
                &n_failed,
                &n_cancelled,
                &cancelled,
                &failure,
                &next_event,
                &end_event,
                &ended_at,
            ],
        )
        .await
    }

    async fn write_tasks(
        &self,
        sql: &'static str,
        tasks: &[(RunKey, &TaskRow)],
        holder: Option<Holder>,
    ) -> Result<(), StoreError> {
        if tasks.is_empty() {
            return Ok(());
        }
        let rows = || tasks.iter().map(|(_, task)| *task);
        let runs: Vec<Uuid> = tasks.iter().map(|(run, _)| key(*run)).collect();
        let nodes: Vec<i32> = rows().map(|task| int32(task.node.0)).collect();
        let state: Vec<i16> = rows().map(|task| task.state() as i16).collect();
        let n_unmet: Vec<i32> = rows().map(|task| int32(task.n_unmet)).collect();
        let n_skipped: Vec<i32> = rows().map(|task| int32(task.n_skipped)).collect();
        let attempt: Vec<i32> = rows().map(|task| int32(task.attempt)).collect();
        let failures: Vec<i32> = rows().map(|task| int32(task.failures)).collect();
        let losses: Vec<i32> = rows().map(|task| int32(task.losses)).collect();
        let queued_logged: Vec<bool> = rows().map(|task| task.queued_logged).collect();
        let (queued_at, due_at): (Vec<Option<i64>>, Vec<Option<i64>>) = rows().map(times).unzip();
        let mut params: Vec<&(dyn ToSql + Sync)> = vec![
            &runs,
            &nodes,
            &state,
            &n_unmet,
            &n_skipped,
            &attempt,
            &failures,
            &losses,
            &queued_logged,
            &queued_at,
            &due_at,
        ];
        let Holder { worker, token, started_at } = holder.unwrap_or_default();
        if holder.is_some() {
            params.extend::<[&(dyn ToSql + Sync); 3]>([&worker, &token, &started_at]);
        }
        self.run(sql, &params).await
    }

    pub(super) async fn write_attempts(
        &self,
        written: &[Written],
        workers: &HashMap<WorkerId, i64>,
    ) -> Result<(), StoreError> {
        let mut rows: Vec<(Uuid, &AttemptRow)> = Vec::new();
        for written in written {
            let run = key(written.run.key);
            rows.extend(written.changes.attempts.iter().map(|attempt| (run, attempt)));
        }
        if rows.is_empty() {
            return Ok(());
        }
        let attempts = || rows.iter().map(|(_, attempt)| *attempt);
        let runs: Vec<Uuid> = rows.iter().map(|(run, _)| *run).collect();
        let nodes: Vec<i32> = attempts().map(|a| int32(a.node.0)).collect();
        let numbers: Vec<i32> = attempts().map(|a| int32(a.attempt)).collect();
        let states: Vec<i16> = attempts().map(|a| a.state as i16).collect();
        let workers: Vec<Option<i64>> =
            attempts().map(|a| workers.get(&a.claim.worker).copied()).collect();
        let tokens: Vec<Uuid> = attempts().map(|a| token(a.claim.token)).collect();
        let queued_at: Vec<i64> = attempts().map(|a| a.claim.queued_at.as_micros()).collect();
        let started_at: Vec<i64> = attempts().map(|a| a.claim.started_at.as_micros()).collect();
        let first_event: Vec<i64> = attempts().map(|a| int(a.first_event)).collect();
        let with_queued: Vec<bool> = attempts().map(|a| a.with_queued).collect();
        let (mut failure, mut retry, mut notes) = (Vec::new(), Vec::new(), Vec::new());
        for attempt in attempts() {
            failure.push(attempt.failure.as_ref().map(json).transpose()?);
            retry.push(attempt.retry.as_ref().map(json).transpose()?);
            notes.push((!attempt.notes.is_empty()).then(|| json(&attempt.notes)).transpose()?);
        }
        let now = self.now.as_micros();
        self.run(
            statements::INSERT_ATTEMPTS,
            &[
                &runs,
                &nodes,
                &numbers,
                &states,
                &workers,
                &tokens,
                &queued_at,
                &started_at,
                &first_event,
                &with_queued,
                &failure,
                &retry,
                &notes,
                &now,
            ],
        )
        .await
    }

    pub(super) async fn write_events(&self, written: &[Written]) -> Result<(), StoreError> {
        let (mut runs, mut numbers, mut at) = (Vec::new(), Vec::new(), Vec::new());
        let (mut nodes, mut attempts, mut kinds) = (Vec::new(), Vec::new(), Vec::new());
        for written in written {
            for event in &written.changes.events {
                runs.push(key(written.run.key));
                numbers.push(int(event.number));
                at.push(event.at.as_micros());
                nodes.push(event.node.map(|node| int32(node.0)));
                attempts.push(int32(event.attempt));
                kinds.push(json(&event.kind)?);
            }
        }
        if runs.is_empty() {
            return Ok(());
        }
        let params: Params<'_> = &[&runs, &numbers, &at, &nodes, &attempts, &kinds];
        self.run(statements::INSERT_EVENTS, params).await
    }

    pub(super) async fn clear_timers(&self, written: &[Written]) -> Result<(), StoreError> {
        let (mut runs, mut nodes) = (Vec::new(), Vec::new());
        for written in written {
            for node in &written.changes.timers_cleared {
                runs.push(key(written.run.key));
                nodes.push(int32(node.0));
            }
        }
        if runs.is_empty() {
            return Ok(());
        }
        self.run(statements::CLEAR_TIMERS, &[&runs, &nodes]).await
    }

    pub(super) async fn set_timers(&self, written: &[Written]) -> Result<(), StoreError> {
        let (mut due, mut runs, mut nodes) = (Vec::new(), Vec::new(), Vec::new());
        for written in written {
            for timer in &written.changes.timers {
                due.push(self.now.after(timer.after).as_micros());
                runs.push(key(written.run.key));
                nodes.push(int32(timer.node.0));
            }
        }
        if runs.is_empty() {
            return Ok(());
        }
        self.run(statements::SET_TIMERS, &[&due, &runs, &nodes]).await
    }
}

/// When a task was queued, and when it is due.
fn times(task: &TaskRow) -> (Option<i64>, Option<i64>) {
    match &task.phase {
        Phase::Queued { since, due } => (Some(since.as_micros()), due.map(Timestamp::as_micros)),
        Phase::Running(claim) => (Some(claim.queued_at.as_micros()), None),
        Phase::Sleeping { until } => (None, Some(until.as_micros())),
        _ => (None, None),
    }
}
