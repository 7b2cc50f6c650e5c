use async_trait::async_trait;
use stepwell_core::decide::{Happening, TaskHappening, Verdict};
use stepwell_core::id::RunKey;
use stepwell_core::run::MemoOutcome;

use super::signals::{resumed_with, waits};
use super::tables::{MemoEntry, StoredRun, Tables};
use super::{MemoryStore, corrupt};
use crate::ports::{
    ClaimRef, Heard, History, InputsOf, ListenAnswer, ListenRequest, MemoAnswer, MemoRequest,
    Memos, StoreError, StoredMemo,
};

#[async_trait]
impl Memos for MemoryStore {
    async fn store_memos(&self, requests: Vec<MemoRequest>) -> Result<Vec<MemoAnswer>, StoreError> {
        Ok(self.transact(|tables| {
            requests.into_iter().map(|request| store(tables, request)).collect()
        }))
    }

    async fn listen(&self, requests: Vec<ListenRequest>) -> Result<Vec<ListenAnswer>, StoreError> {
        self.transact(|tables| {
            requests.into_iter().map(|request| listen(tables, request)).collect()
        })
    }

    async fn memos(&self, run: RunKey) -> Result<Vec<StoredMemo>, StoreError> {
        Ok(self.transact(|tables| {
            let Some(run) = tables.runs.get(&run) else { return Vec::new() };
            memos(run)
        }))
    }
}

/// All memos of a run, with their payloads.
pub(super) fn memos(run: &StoredRun) -> Vec<StoredMemo> {
    run.memos.values().map(|memo| with_payload(run, &memo.memo)).collect()
}

fn store(tables: &mut Tables, request: MemoRequest) -> MemoAnswer {
    let now = tables.now;
    let ClaimRef { run, node, token } = request.claim;
    let Some(stored) = tables.runs.get_mut(&run) else { return MemoAnswer::NotMine };
    let Some(task) = stored.tasks.get_mut(&node).filter(|task| task.is_held_by(token)) else {
        // The reply to an earlier request may have been lost.
        let is_there = |memo: &StoredMemo| {
            let known = stored.memos.get(&(node, memo.row.key.clone()));
            let known = known.filter(|known| known.token == Some(token));
            known.map(|known| &known.memo.row).filter(|known| memo.row.is_repeat_of(known))
        };
        let known = request.memos.iter().map(is_there).collect::<Option<Vec<_>>>();
        return known
            .and_then(|known| known.iter().map(|known| known.at).max())
            .map_or(MemoAnswer::NotMine, MemoAnswer::Stored);
    };
    task.losses = 0;
    let mut stored_at = now;
    for StoredMemo { mut row, payload } in request.memos {
        (row.node, row.began_at, row.at) = (node, row.began_at.min(now), now);
        let key = (node, row.key.clone());
        // What the function may have heard of is never replaced.
        if let Some(known) = stored.memos.get(&key).map(|known| &known.memo.row)
            && known.number > 0
        {
            stored_at = if row.is_repeat_of(known) { known.at } else { stored_at };
            continue;
        }
        let memo = MemoEntry { token: Some(token), memo: StoredMemo { row, payload } };
        stored.memos.insert(key, memo);
    }
    MemoAnswer::Stored(stored_at)
}

fn listen(tables: &mut Tables, request: ListenRequest) -> Result<ListenAnswer, StoreError> {
    let ClaimRef { run, node, token } = request.claim;
    let task = tables.runs.get(&run).and_then(|run| run.tasks.get(&node));
    if !task.is_some_and(|task| task.is_held_by(token)) {
        return Ok(ListenAnswer::NotMine);
    }
    let happening = TaskHappening::Listens(Box::new(request.listening));
    let Verdict::Listening(heard) = tables.happen(run, Happening::Task(node, happening))? else {
        return Err(corrupt("a request to listen was not answered"));
    };
    let stored = tables.run(run)?;
    let heard = heard.map(|heard| Heard {
        place: heard.place,
        payload: heard.resumed.map(|resumed| resumed_with(stored, resumed)),
        at: tables.now,
    });
    Ok(ListenAnswer::Listening(heard))
}

/// What an execution finds of those before it.
pub(super) fn history(run: &StoredRun, task: &InputsOf) -> Option<Box<History>> {
    let node = task.claim.node;
    let row = run.tasks.get(&node).filter(|_| task.has_history())?;
    let first = run.attempts.iter().find(|attempt| attempt.node == node);
    let of_task = run.memos.range((node, String::new())..);
    let of_task = of_task.take_while(|((of, _), _)| *of == node);
    Some(Box::new(History {
        began_at: first.map(|attempt| attempt.claim.started_at).unwrap_or_default(),
        memos: of_task.map(|(_, memo)| with_payload(run, &memo.memo)).collect(),
        waits: waits(run).into_iter().filter(|wait| wait.node == node).collect(),
        has_suspended: row.may_have_waits() || row.resumed.is_some(),
        has_losses: row.losses > 0,
        has_signals: run.row.n_unconsumed > 0,
    }))
}

/// A memo as it is read: with what ended its wait.
fn with_payload(run: &StoredRun, memo: &StoredMemo) -> StoredMemo {
    let payload = match memo.row.outcome {
        MemoOutcome::Ended(resumed) => Some(resumed_with(run, resumed)),
        _ => memo.payload.clone(),
    };
    StoredMemo { row: memo.row.clone(), payload }
}
