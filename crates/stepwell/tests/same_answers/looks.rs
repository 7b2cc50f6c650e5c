//! Reads of a store.

use stepwell::RunStatus;
use stepwell::core::id::{Node, RunId};
use stepwell::ports::{AwaitedRun, RunFilter, RunView, StoreError, WaitingRuns};

use super::command::Look;
use super::player::{Player, nth, tenant};
use super::shapes::signal;
use super::words::bytes;

impl Player {
    pub(crate) async fn look(&mut self, look: &Look) -> String {
        match look {
            Look::Inputs { claims } => {
                let claims = self.pick_all(claims);
                self.words.inputs(self.store.inputs(&claims).await)
            }
            Look::Run { run } => self.look_at_run(*run).await,
            Look::Find { tenant: number, id } => {
                let id = RunId::new(format!("id-{id}")).expect("a good name");
                let found = self.store.find(&tenant(*number), &id).await;
                self.words.plain(found.map(|view| view.map(seen)))
            }
            Look::Ended { runs } => {
                // Each run is asked for with the output of another step.
                let asked = runs.iter().map(|run| AwaitedRun {
                    run: self.key(*run),
                    output: (*run % 4 != 0).then(|| Node(u32::from(*run % 4))),
                });
                let ended = self.store.ended(&asked.collect::<Vec<_>>()).await;
                // Waiters look for their own run, wherever it stands in the answer.
                let sorted = ended.map(|mut ended| {
                    ended.sort_unstable_by_key(|(run, _)| *run);
                    ended.dedup();
                    ended
                });
                self.words.plain(sorted)
            }
            Look::List { .. } => self.list(look).await,
            Look::Waiting { tenant: whose, shape, signal: name, after, n } => {
                let workflow = format!("shape-{shape}");
                let signal = signal(*name).to_owned();
                let asked = WaitingRuns { tenant: tenant(*whose), workflow, signal };
                let after = after.map(|run| self.key(run));
                self.words.plain(self.store.waiting_runs(&asked, after, (*n).into()).await)
            }
            Look::Tenant { tenant: number } => {
                self.words.plain(self.store.tenant(&tenant(*number)).await)
            }
            Look::Definition { flow } => {
                let Some(id) = nth(&self.flows, *flow).map(|flow| flow.id) else {
                    return String::new();
                };
                self.words.plain(self.store.definition(id).await)
            }
            Look::Latest { shape } => {
                self.words.plain(self.store.latest(&format!("shape-{shape}")).await)
            }
            Look::Everything => self.dump().await,
        }
    }

    async fn look_at_run(&mut self, run: u8) -> String {
        let key = self.key(run);
        let view = self.store.run(key).await.map(|view| view.map(seen));
        let tasks = self.store.tasks(key).await;
        let tasks = tasks.map(|all| all.iter().map(|t| self.words.task(t)).collect::<Vec<_>>());
        let outputs = self.store.outputs(key).await;
        let all = outputs.map(|all| {
            all.into_iter().map(|(node, payload)| (node, bytes(&payload))).collect::<Vec<_>>()
        });
        let mut one_by_one = Vec::new();
        for task in tasks.iter().flatten() {
            let output = self.store.output(key, task.node).await;
            one_by_one.push(self.words.plain(output.map(|output| output.as_ref().map(bytes))));
        }
        let log = match self.store.log(key).await {
            Ok(Some(log)) => self.words.log(&log),
            other => self.words.plain(other),
        };
        let waits = self.words.plain(self.store.waits(key).await);
        let signals = self.store.signals(key).await;
        let signals =
            self.words.plain(signals.map(|all| {
                all.into_iter().map(|s| (s.row, bytes(&s.payload))).collect::<Vec<_>>()
            }));
        let memos = self.words.memos(self.store.memos(key).await);
        format!("{view:?}\n{tasks:?}\n{all:?}\n{one_by_one:?}\n{log}\n{waits}\n{signals}\n{memos}")
    }

    async fn list(&self, look: &Look) -> String {
        let Look::List { tenant: of, shape, status, before, n } = look else {
            unreachable!("{look:?} is no listing")
        };
        let filter = RunFilter {
            tenant: of.map(tenant),
            workflow: shape.map(|number| format!("shape-{number}")),
            status: status.map(|number| RunStatus::ALL[usize::from(number) % RunStatus::ALL.len()]),
        };
        let before = before.map(|run| self.key(run));
        let page = self.store.list(&filter, before, usize::from(*n)).await;
        let page =
            page.map(|page| (page.runs.into_iter().map(seen).collect::<Vec<_>>(), page.next));
        self.words.plain(page)
    }

    /// Everything the store holds.
    pub(crate) async fn dump(&mut self) -> String {
        let dump: Result<_, StoreError> = self.store.dump().await;
        match dump {
            Ok(dump) => self.words.dump(&dump, !self.theme.leaves_order_open()),
            Err(error) => format!("{error:?}"),
        }
    }
}

fn seen(view: RunView) -> String {
    format!("{:?} on {} {}", view.row, view.definition.definition.workflow, view.definition.version)
}
