//! Plays two calls against each other.

use std::time::Duration;

use tokio_postgres::{Client, Statement};

use super::explorer::Guide;
use super::orders::Side;
use crate::wire::{Gate, Wire};

/// A statement that takes longer may be waiting for a lock.
const SUSPICION: Duration = Duration::from_millis(1);

/// How long a side may think before a test is given up.
const PATIENCE: Duration = Duration::from_secs(30);

/// Two wires and somebody who sees who waits for whom.
#[derive(Debug)]
pub struct Duet {
    wires: [Wire; 2],
    watcher: Client,
    is_blocked: Statement,
}

/// What came of it.
#[derive(Clone, Debug)]
pub struct Played<A, B> {
    /// What the first call gave.
    pub one: A,
    /// What the second call gave.
    pub other: B,
    /// How many statements each side executed.
    pub n_statements: [usize; 2],
    /// How often a side had to wait for a lock.
    pub n_waits: usize,
    /// Every statement in the order in which they were let go.
    pub story: Vec<String>,
}

/// Where a side stands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Standing {
    /// A statement of it waits to be let go.
    Ready,
    /// The server makes it wait for a lock.
    Blocked,
    /// It has no more statements.
    Ended,
}

impl Duet {
    /// Two wires to one server; `watcher` is a connection past them.
    pub async fn new(wires: [Wire; 2], watcher: Client) -> Self {
        let is_blocked = "select cardinality(pg_blocking_pids($1)) > 0";
        let is_blocked = watcher.prepare(is_blocked).await.expect("the server knows its locks");
        Self { wires, watcher, is_blocked }
    }

    /// The wires.
    #[must_use]
    pub const fn wires(&self) -> &[Wire; 2] {
        &self.wires
    }

    /// The connection past the wires.
    #[must_use]
    pub const fn watcher(&self) -> &Client {
        &self.watcher
    }

    /// Plays two calls as the guide says; both end.
    ///
    /// # Panics
    /// If each side waits for a lock of the other.
    pub async fn play<A, B>(
        &self,
        guide: &mut (impl Guide + Send),
        one: impl Future<Output = A>,
        other: impl Future<Output = B>,
    ) -> Played<A, B> {
        let [gate_one, gate_other] = [self.gate(Side::One), self.gate(Side::Other)];
        gate_one.close();
        gate_other.close();
        let mut conductor = Conductor::new(self, guide);
        let (one, other, ()) =
            tokio::join!(ended(one, gate_one), ended(other, gate_other), conductor.conduct(),);
        let n_statements = [gate_one, gate_other].map(|gate| gate.watch().borrow().passed().len());
        gate_one.open();
        gate_other.open();
        let Conductor { n_waits, story, .. } = conductor;
        Played { one, other, n_statements, n_waits, story }
    }

    fn gate(&self, side: Side) -> &Gate {
        self.wires[side as usize].gate()
    }
}

async fn ended<T>(call: impl Future<Output = T>, gate: &Gate) -> T {
    let gave = call.await;
    gate.end();
    gave
}

struct Conductor<'d, G> {
    duet: &'d Duet,
    guide: &'d mut G,
    standings: [Standing; 2],
    n_waits: usize,
    story: Vec<String>,
}

impl<'d, G: Guide> Conductor<'d, G> {
    fn new(duet: &'d Duet, guide: &'d mut G) -> Self {
        let standings = [Standing::Ready; 2];
        Self { duet, guide, standings, n_waits: 0, story: Vec::new() }
    }

    async fn conduct(&mut self) {
        self.settle(Side::One).await;
        self.settle(Side::Other).await;
        while let Some(side) = self.next() {
            let ends_transaction = self.let_go(side).await;
            self.settle(side).await;
            // Locks are held until the end of a transaction, so only that sets the other free.
            if ends_transaction || self.standing(side) != Standing::Ready {
                self.settle(side.across()).await;
            } else {
                self.glance(side.across());
            }
            // What the other did when it was free may have set this one free.
            if self.standing(side) == Standing::Blocked {
                self.settle(side).await;
            }
        }
    }

    /// Who goes next; nobody if both have ended.
    fn next(&mut self) -> Option<Side> {
        let can_go = self.standings.map(|standing| standing == Standing::Ready);
        let is_over = self.standings == [Standing::Ended; 2];
        let story = || self.story.join("\n");
        assert!(can_go != [false; 2] || is_over, "deadlock {:?}:\n{}", self.standings, story());
        (!is_over).then(|| self.guide.choose(can_go))
    }

    fn standing(&self, side: Side) -> Standing {
        self.standings[side as usize]
    }

    /// Lets one statement go. Says whether it ends a transaction.
    async fn let_go(&mut self, side: Side) -> bool {
        let gate = self.duet.gate(side);
        let mut state = gate.watch();
        let n_before = state.borrow().passed().len();
        gate.let_one_go();
        let passed = patient(state.wait_for(|state| state.passed().len() > n_before)).await;
        let passed = passed.expect("the wire stands");
        let text = passed.passed().last().map(String::as_str).unwrap_or_default();
        self.story.push(format!("{side:?}: {}", first_line(text)));
        self.guide.went(side, text);
        let text = text.to_lowercase();
        ["commit", "rollback"].iter().any(|end| text.starts_with(end))
    }

    /// Takes note if a side that waited has its answer, without asking the server.
    fn glance(&mut self, side: Side) {
        let gate = self.duet.gate(side).watch();
        let now = gate.borrow();
        if now.has_ended() {
            self.standings[side as usize] = Standing::Ended;
        } else if now.is_holding() {
            self.standings[side as usize] = Standing::Ready;
        }
    }

    /// Waits until a side can go on, has ended, or waits for a lock.
    async fn settle(&mut self, side: Side) {
        let mut state = self.duet.gate(side).watch();
        let was_blocked = self.standing(side) == Standing::Blocked;
        let mut is_suspect = was_blocked;
        let standing = loop {
            let busy = {
                let now = state.borrow_and_update();
                if now.has_ended() {
                    break Standing::Ended;
                }
                if now.is_holding() {
                    break Standing::Ready;
                }
                now.is_in_flight().then(|| now.busy_processes())
            };
            let Some(busy) = busy else {
                // The call computes; its next statement or its end is near.
                patient(state.changed()).await.expect("the wire stands");
                continue;
            };
            if is_suspect && self.is_blocked(&busy).await {
                break Standing::Blocked;
            }
            is_suspect = !changes_soon(&mut state).await;
        };
        if standing == Standing::Blocked && !was_blocked {
            self.n_waits += 1;
            self.story.push(format!("{side:?} waits"));
        }
        self.standings[side as usize] = standing;
    }

    async fn is_blocked(&self, processes: &[i32]) -> bool {
        for process in processes {
            let asked = self.duet.watcher.query_one(&self.duet.is_blocked, &[process]).await;
            if asked.expect("the server answers").get(0) {
                return true;
            }
        }
        false
    }
}

#[expect(clippy::disallowed_methods, reason = "whether a process waits shows in its silence only")]
async fn changes_soon<T>(state: &mut tokio::sync::watch::Receiver<T>) -> bool {
    tokio::time::timeout(SUSPICION, state.changed()).await.is_ok()
}

#[expect(clippy::disallowed_methods, reason = "a test that hangs says so")]
async fn patient<T>(future: impl Future<Output = T>) -> T {
    tokio::time::timeout(PATIENCE, future).await.expect("nothing happens any more")
}

/// The line that says what a statement does: the first comment, or the first line.
fn first_line(text: &str) -> &str {
    text.lines().next().unwrap_or_default()
}
