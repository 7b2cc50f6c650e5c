//! What can be seen of a store, in few words.

use std::collections::BTreeSet;

use stepwell_core::run::{Event, EventKind, RunRow, RunStatus, TaskRow, read_log};

use super::{Run, World, tenant};
use crate::ports::{Payload, StoreDump, TaskPlace, TenantView};

impl World {
    /// Every task's state, as in `a COMPLETED, b QUEUED`.
    pub async fn states(&self, run: &Run) -> String {
        let tasks = self.store.tasks(run.key).await.expect("read tasks");
        let name = |task: &TaskRow| run.flow.0.definition.name(task.node).to_owned();
        let states: Vec<String> =
            tasks.iter().map(|task| format!("{} {}", name(task), task.state())).collect();
        states.join(", ")
    }

    /// One task.
    pub async fn task(&self, run: &Run, step: &str) -> TaskRow {
        let tasks = self.store.tasks(run.key).await.expect("read tasks");
        let node = run.node(step);
        tasks.into_iter().find(|task| task.node == node).expect("the run has the task")
    }

    /// A run's row.
    pub async fn row(&self, run: &Run) -> RunRow {
        let view = self.store.run(run.key).await.expect("read a run");
        view.expect("the run exists").row
    }

    /// How a run stands.
    pub async fn status(&self, run: &Run) -> RunStatus {
        self.row(run).await.status
    }

    /// A task's output.
    pub async fn output(&self, run: &Run, step: &str) -> Option<Payload> {
        self.store.output(run.key, run.node(step)).await.expect("read an output")
    }

    /// A run's log.
    pub async fn events(&self, run: &Run) -> Vec<Event> {
        let log = self.store.log(run.key).await.expect("read a log");
        read_log(&log.expect("the run exists"))
    }

    /// A run's log in words, events without a number in brackets, as in
    /// `RUN_STARTED, a QUEUED, a STARTED, a COMPLETED, (b QUEUED)`.
    pub async fn trail(&self, run: &Run) -> String {
        let events = self.events(run).await;
        let words: Vec<String> = events.iter().map(|event| in_words(run, event)).collect();
        words.join(", ")
    }

    /// The last event of a kind.
    pub async fn last_event(&self, run: &Run, name: &str) -> Event {
        let events = self.events(run).await;
        let found = events.into_iter().rev().find(|event| event.kind.name() == name);
        found.unwrap_or_else(|| panic!("no {name} in the log"))
    }

    /// Where a queued task waits.
    pub async fn place(&self, run: &Run, step: &str) -> Option<TaskPlace> {
        self.dump().await.places.remove(&(run.key, run.node(step)))
    }

    /// A tenant the store has seen.
    pub async fn tenant_view(&self, name: &str) -> TenantView {
        let view = self.store.tenant(&tenant(name)).await.expect("read a tenant");
        view.expect("the store has seen the tenant")
    }

    /// Everything the store holds.
    pub async fn dump(&self) -> StoreDump {
        self.store.dump().await.expect("dump the store")
    }

    /// Does something that must leave the store exactly as it was; gives its answer.
    pub async fn unchanged_by<T>(&self, act: impl Future<Output = T>) -> T {
        let before = self.rows().await;
        let answer = act.await;
        let after = self.rows().await;
        let changed: Vec<&String> = before.symmetric_difference(&after).collect();
        assert!(changed.is_empty(), "nothing may change, but did: {changed:#?}");
        answer
    }

    /// Every row of the store as a line of text, outputs included.
    async fn rows(&self) -> BTreeSet<String> {
        let dump = self.dump().await;
        let mut rows = BTreeSet::new();
        for (key, log) in &dump.runs {
            rows.insert(format!("run {:?}", log.run));
            rows.extend(log.attempts.iter().map(|row| format!("attempt of {key} {row:?}")));
            rows.extend(log.events.iter().map(|row| format!("event of {key} {row:?}")));
            for (node, output) in self.store.outputs(*key).await.expect("read outputs") {
                let bytes = &output.bytes;
                rows.insert(format!("output of {key} {node:?} {} {bytes:?}", output.codec));
            }
            for signal in self.store.signals(*key).await.expect("read signals") {
                let Payload { codec, bytes, .. } = &signal.payload;
                rows.insert(format!("signal of {key} {:?} {codec} {bytes:?}", signal.row));
            }
        }
        for (key, tasks) in &dump.tasks {
            rows.extend(tasks.iter().map(|row| format!("task of {key} {row:?}")));
        }
        for (key, waits) in &dump.waits {
            rows.extend(waits.iter().map(|row| format!("wait of {key} {row:?}")));
        }
        rows.extend(dump.places.iter().map(|place| format!("place {place:?}")));
        rows.extend(dump.timers.iter().map(|timer| format!("timer {timer:?}")));
        for (worker, claims) in &dump.claims {
            rows.extend(claims.iter().map(|claim| format!("claim of {worker} {claim:?}")));
        }
        // Whether a tenant without work has a row is the store's business.
        let admitted = dump.admitted.iter().filter(|(_, n)| **n > 0);
        rows.extend(admitted.map(|count| format!("admitted {count:?}")));
        rows
    }
}

fn in_words(run: &Run, event: &Event) -> String {
    let name = event.kind.name();
    let words = match (event.node, &event.kind) {
        (None, EventKind::RunEnded { status }) => format!("{name} {status}"),
        (None, EventKind::RunEnding { ends_as }) => format!("{name} {ends_as}"),
        (None, _) => name.to_owned(),
        (Some(node), _) => format!("{} {name}", run.flow.0.definition.name(node)),
    };
    if event.number.is_some() { words } else { format!("({words})") }
}
