//! What earlier executions of tasks left: memos, open waits, and what is told of them.

use std::collections::HashMap;

use stepwell_core::id::{Node, RunKey};

use super::super::rows::{Param, TaskKeys, keys, memo, read_all, wait};
use super::super::session::{PgResult, Session};
use super::super::sql::{self, Sql};
use super::inbox::READ_WAITS;
use crate::ports::History;

const READ_MEMOS: Sql = sql::MEMO.named("read_memos");
const READ_HISTORIES: Sql = sql::MEMO.named("read_histories");

/// What earlier executions left, by task.
pub(super) type Histories = HashMap<(RunKey, Node), History>;

/// Reads what earlier executions of these tasks left.
pub(super) async fn read_histories(
    session: &Session,
    tasks: Vec<(RunKey, Node)>,
) -> PgResult<Histories> {
    if tasks.is_empty() {
        return Ok(Histories::new());
    }
    let runs = keys(tasks.iter().map(|(run, _)| run));
    let asked = TaskKeys::of(tasks);
    let (of_tasks, of_runs): (_, [Param<'_>; 1]) = (asked.params(), [&runs]);
    let (told, memos, waits) = tokio::join!(
        biased;
        session.all(READ_HISTORIES, &of_tasks),
        session.all(READ_MEMOS, &of_tasks),
        session.all(READ_WAITS, &of_runs),
    );
    let mut histories = Histories::new();
    for (task, earlier) in read_all(&told?, memo::read_earlier)? {
        let memo::Earlier { has_suspended, has_losses, has_signals, began_at } = earlier;
        let (memos, waits) = (Vec::new(), Vec::new());
        let began_at = began_at.unwrap_or_default();
        let history = History { began_at, memos, waits, has_suspended, has_losses, has_signals };
        histories.insert(task, history);
    }
    for (run, memo) in read_all(&memos?, memo::read_stored)? {
        if let Some(history) = histories.get_mut(&(run, memo.row.node)) {
            history.memos.push(memo);
        }
    }
    for (run, wait) in read_all(&waits?, wait::read)? {
        if let Some(history) = histories.get_mut(&(run, wait.node)) {
            history.waits.push(wait);
        }
    }
    Ok(histories)
}
