use async_trait::async_trait;
use stepwell_core::decide::{Happening, TaskHappening, Verdict};
use stepwell_core::id::RunKey;
use stepwell_core::run::MemoRow;

use super::file::corrupt;
use super::run::happen::happen;
use super::run::inputs::resumed_with;
use super::writer::Transaction;
use super::{SqliteStore, rows};
use crate::ports::{
    ClaimRef, Heard, ListenAnswer, ListenRequest, MemoAnswer, MemoRequest, Memos, StoreError,
    StoredMemo,
};

#[async_trait]
impl Memos for SqliteStore {
    async fn store_memos(&self, requests: Vec<MemoRequest>) -> Result<Vec<MemoAnswer>, StoreError> {
        self.write(move |transaction| {
            requests.iter().map(|request| store(transaction, request)).collect()
        })
        .await
    }

    async fn listen(&self, requests: Vec<ListenRequest>) -> Result<Vec<ListenAnswer>, StoreError> {
        self.write(move |transaction| {
            requests.into_iter().map(|request| listen(transaction, request)).collect()
        })
        .await
    }

    async fn memos(&self, run: RunKey) -> Result<Vec<StoredMemo>, StoreError> {
        self.read(move |transaction| rows::memo::of_run(transaction.file, run, None)).await
    }
}

fn store(
    transaction: &mut Transaction<'_, '_>,
    request: &MemoRequest,
) -> Result<MemoAnswer, StoreError> {
    let (file, runs, now) = (transaction.file, &mut transaction.cache.runs, transaction.now);
    let ClaimRef { run, node, token } = request.claim;
    let task = runs.find_task(file, run, node)?.filter(|task| task.row.is_held_by(token));
    let Some(task) = task else { return stored_before(transaction, request) };
    if task.row.losses > 0 {
        runs.change_task(file, run, node)?.row.losses = 0;
    }
    let run_no = runs.load(file, run)?.no;
    let mut stored_at = now;
    for StoredMemo { row, payload } in &request.memos {
        let row = MemoRow { node, began_at: row.began_at.min(now), at: now, ..row.clone() };
        if rows::memo::put(file, run_no, &row, payload.as_ref(), Some(token))? {
            continue;
        }
        let known = rows::memo::under(file, request.claim, &row.key)?;
        stored_at = known.filter(|known| row.is_repeat_of(known)).map_or(stored_at, |k| k.at);
    }
    Ok(MemoAnswer::Stored(stored_at))
}

/// The answer to a request whose claim no longer holds its task. The reply to an earlier one may
/// have been lost: then its memos are there.
fn stored_before(
    transaction: &mut Transaction<'_, '_>,
    request: &MemoRequest,
) -> Result<MemoAnswer, StoreError> {
    let mut stored_at = None;
    for memo in &request.memos {
        let known = rows::memo::under(transaction.file, request.claim, &memo.row.key)?;
        match known.filter(|known| memo.row.is_repeat_of(known)) {
            Some(known) => stored_at = stored_at.max(Some(known.at)),
            None => return Ok(MemoAnswer::NotMine),
        }
    }
    Ok(stored_at.map_or(MemoAnswer::NotMine, MemoAnswer::Stored))
}

fn listen(
    transaction: &mut Transaction<'_, '_>,
    request: ListenRequest,
) -> Result<ListenAnswer, StoreError> {
    let ClaimRef { run, node, token } = request.claim;
    let task = transaction.cache.runs.find_task(transaction.file, run, node)?;
    if !task.is_some_and(|task| task.row.is_held_by(token)) {
        return Ok(ListenAnswer::NotMine);
    }
    let happening = TaskHappening::Listens(Box::new(request.listening));
    let verdict = happen(transaction, run, Happening::Task(node, happening))?;
    let Verdict::Listening(heard) = verdict else {
        return Err(corrupt("a request to listen was not answered"));
    };
    let Some(heard) = heard else { return Ok(ListenAnswer::Listening(None)) };
    let resumed = heard.resumed.map(|resumed| resumed_with(transaction.file, run, resumed));
    let (place, payload, at) = (heard.place, resumed.transpose()?, transaction.now);
    Ok(ListenAnswer::Listening(Some(Heard { place, payload, at })))
}
