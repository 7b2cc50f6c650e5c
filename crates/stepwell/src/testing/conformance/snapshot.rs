//! Snapshots: a run is read whole, as it stood at one moment.

use std::collections::BTreeSet;

use futures_util::future::{join, join_all};
use stepwell_core::id::Node;
use stepwell_core::run::{TaskRow, TaskState, fold, read_log};

use super::world::{Run, Sending, World, completed, waiting};
use crate::ports::{CommitItem, RunSnapshot, SignalRequest, StoredSignal};

async fn snapshot(world: &World, run: &Run) -> RunSnapshot {
    world.store().snapshot(run.key).await.expect("read a run").expect("the run exists")
}

pub(super) async fn a_snapshot_is_what_every_read_gives(world: &World) {
    let flow = world.define("a; s ~ 1h; w ? paid/2h; v ? sent; b < a; c < w").await;
    let run = world.start(&flow).await;
    world.start(&flow).await;
    world.complete(world.claim_all().await.of("a")).await;
    world.send(world.to(&run, "paid").with("order", "4711")).await;
    world.signal(&run, "other").await;
    let found = snapshot(world, &run).await;
    let log = world.store().log(run.key).await.expect("read a log").expect("the run exists");
    assert_eq!(format!("{:?}", found.log), format!("{log:?}"));
    assert_eq!(found.definition.id, run.flow.0.id);
    assert_eq!(found.tasks, world.store().tasks(run.key).await.expect("read tasks"));
    assert_eq!(found.waits, world.waits(&run).await);
    assert_eq!(found.signals, world.signals(&run).await);
    let counts = (found.tasks.len(), found.waits.len(), found.signals.len());
    assert_eq!(counts, (6, 1, 2));
}

pub(super) async fn a_snapshot_never_shows_half_of_what_happens(world: &World) {
    let flow = world.define("a; b; u ? paid; v ? paid; w ? paid; x ? paid; z < a, u, v, w").await;
    for _ in 0..5 {
        let run = world.start(&flow).await;
        let held = world.claim_all().await;
        let outcomes = [("a", waiting("sent")), ("b", completed())];
        let items = outcomes.map(|(step, outcome)| {
            let claim = held.of(step).claim;
            CommitItem { claim, outcome }
        });
        let names = ["paid", "sent", "paid", "other", "paid", "paid"];
        let sendings: Vec<Sending> = names.iter().map(|name| world.to(&run, name)).collect();
        let commit = world.store().commit(items.into());
        let signals = sendings.into_iter().map(|sending| {
            let requests = vec![SignalRequest::from(sending)];
            async move { world.store().signal(requests).await.expect("send a signal") }
        });
        let looks = join_all((0..8).map(|_| async {
            check(&snapshot(world, &run).await);
        }));
        let (answers, _) = join(join(commit, join_all(signals)), looks).await;
        answers.0.expect("commit");
        world.cancel(&run).await;
        check(&snapshot(world, &run).await);
    }
}

/// Holds the parts of a snapshot against each other.
fn check(snapshot: &RunSnapshot) {
    let RunSnapshot { log, tasks, waits, signals, .. } = snapshot;
    let open: Vec<&TaskRow> = tasks.iter().filter(|task| !task.state().is_terminal()).collect();
    assert_eq!(log.open.iter().collect::<Vec<_>>(), open, "the log knows the open tasks");
    assert_eq!(log.run.n_open as usize, open.len(), "the run counts them");
    let (status, states) = fold(&read_log(log)).expect("the log is in order");
    assert_eq!(status, log.run.status);
    for task in tasks {
        let told = states.get(&task.node).copied().unwrap_or(TaskState::Pending);
        assert_eq!(task.state(), told, "{:?} is as the log tells", task.node);
    }
    let is_waiting = |task: &&TaskRow| task.state() == TaskState::Waiting;
    let waiting: BTreeSet<Node> = tasks.iter().filter(is_waiting).map(|task| task.node).collect();
    assert_eq!(waits.iter().map(|wait| wait.node).collect::<BTreeSet<_>>(), waiting);
    assert_eq!(log.run.n_signals, signals.len() as u64, "every signal is counted");
    let is_left = |signal: &&StoredSignal| signal.row.consumed_by.is_none();
    assert_eq!(log.run.n_unconsumed as usize, signals.iter().filter(is_left).count());
}
