//! A gate before the server: closed, it lets one statement through at a time.

use std::collections::{BTreeMap, VecDeque};
use std::sync::Arc;

use tokio::sync::watch;

/// The gate of one wire, for all its sessions. Clones are one gate.
///
/// Statements that execute nothing pass at any time, so that preparing does not count.
#[derive(Clone, Debug)]
pub struct Gate {
    state: Arc<watch::Sender<GateState>>,
}

/// What can be seen at a gate.
#[derive(Clone, Debug, Default)]
pub struct GateState {
    is_closed: bool,
    /// How many statements may still pass.
    tickets: usize,
    has_ended: bool,
    sessions: BTreeMap<u64, AtGate>,
    /// The texts of those that passed since the gate was closed.
    passed: Vec<String>,
}

/// One session at the gate.
#[derive(Clone, Debug, Default)]
struct AtGate {
    /// The texts of statements that wait.
    held: VecDeque<String>,
    n_in_flight: usize,
    process: Option<i32>,
}

impl GateState {
    /// Whether a statement waits and none is under way.
    #[must_use]
    pub fn is_holding(&self) -> bool {
        self.tickets == 0
            && !self.is_in_flight()
            && self.sessions.values().any(|session| !session.held.is_empty())
    }

    /// Whether the server has a statement that it did not answer yet.
    #[must_use]
    pub fn is_in_flight(&self) -> bool {
        self.tickets > 0 || self.sessions.values().any(|session| session.n_in_flight > 0)
    }

    /// The server processes that have not answered yet.
    #[must_use]
    pub fn busy_processes(&self) -> Vec<i32> {
        let busy = self.sessions.values().filter(|session| session.n_in_flight > 0);
        busy.filter_map(|session| session.process).collect()
    }

    /// Whether [`Gate::end`] was called since the gate was closed.
    #[must_use]
    pub const fn has_ended(&self) -> bool {
        self.has_ended
    }

    /// The texts of the statements that passed since the gate was closed.
    #[must_use]
    pub fn passed(&self) -> &[String] {
        &self.passed
    }
}

impl Gate {
    pub(super) fn new() -> Self {
        Self { state: Arc::new(watch::Sender::new(GateState::default())) }
    }

    /// Holds every statement from now on.
    pub fn close(&self) {
        self.state.send_modify(|state| {
            state.is_closed = true;
            state.tickets = 0;
            state.has_ended = false;
            state.passed.clear();
        });
    }

    /// Lets everything pass.
    pub fn open(&self) {
        self.state.send_modify(|state| state.is_closed = false);
    }

    /// Lets the next statement pass.
    pub fn let_one_go(&self) {
        self.state.send_modify(|state| state.tickets += 1);
    }

    /// Whoever sent statements through this gate has no more of them.
    pub fn end(&self) {
        self.state.send_modify(|state| state.has_ended = true);
    }

    /// What can be seen now, and whenever it changes.
    #[must_use]
    pub fn watch(&self) -> watch::Receiver<GateState> {
        self.state.subscribe()
    }

    pub(super) fn hold(&self, session: u64, text: &str) {
        self.state.send_modify(|state| {
            state.sessions.entry(session).or_default().held.push_back(text.to_owned());
        });
    }

    /// Whether the first statement of a session that waits may go. If so, it counts as under way.
    pub(super) fn passes(&self, session: u64) -> bool {
        let pass = |state: &mut GateState| {
            if state.is_closed && state.tickets == 0 {
                return false;
            }
            let at_gate = state.sessions.entry(session).or_default();
            let text = at_gate.held.pop_front().unwrap_or_default();
            at_gate.n_in_flight += 1;
            if state.is_closed {
                state.tickets -= 1;
                state.passed.push(text);
            }
            true
        };
        self.state.send_if_modified(pass)
    }

    /// The server answered a statement that had passed.
    pub(super) fn answered(&self, session: u64) {
        self.state.send_modify(|state| {
            let at_gate = state.sessions.entry(session).or_default();
            at_gate.n_in_flight = at_gate.n_in_flight.saturating_sub(1);
        });
    }

    pub(super) fn is_served_by(&self, session: u64, process: i32) {
        self.state.send_modify(|state| {
            state.sessions.entry(session).or_default().process = Some(process);
        });
    }

    pub(super) fn forget(&self, session: u64) {
        self.state.send_modify(|state| drop(state.sessions.remove(&session)));
    }
}
