//! What a store has to write after the rules have worked on an image.

use alloc::boxed::Box;
use alloc::collections::BTreeSet;
use alloc::string::String;
use alloc::vec::Vec;
use core::time::Duration;

use crate::id::Node;
use crate::run::{AttemptRow, Claim, EventRow, MemoRow, RunTimer, SignalRow, WaitRow};

/// What a store has to write after the rules have worked on an image.
#[derive(Debug, Default)]
pub struct Changes {
    /// Tasks whose rows changed.
    pub touched: BTreeSet<Node>,
    /// Tasks that enter their queue now, in order.
    pub enqueued: Vec<Node>,
    /// Tasks that leave their queue, or the line before it, without being claimed.
    pub dequeued: Vec<Node>,
    /// Timers to set.
    pub timers: Vec<Timer>,
    /// Tasks whose timer goes.
    pub timers_cleared: Vec<Node>,
    /// Claims that ended.
    pub claims_ended: Vec<(Node, Claim)>,
    /// Attempts that ended.
    pub attempts: Vec<AttemptRow>,
    /// Irregular events.
    pub events: Vec<EventRow>,
    /// Whether the run ended.
    pub run_ended: bool,
    /// What few decisions bring; the others pay a null pointer for it.
    pub extras: Option<Box<Extras>>,
}

/// What few decisions bring.
#[derive(Debug, Default)]
pub struct Extras {
    /// Tasks that were not there from the start: the run inserted them itself.
    pub inserted: Vec<Node>,
    /// The run's own timers that go.
    pub run_timers_cleared: Vec<RunTimer>,
    /// Waits that open. One of a task whose wait closes takes its place.
    pub waits_opened: Vec<WaitRow>,
    /// Tasks all of whose waits close.
    pub waits_closed: Vec<Node>,
    /// Waits of functions that close alone, by task and key.
    pub waits_ended: Vec<(Node, String)>,
    /// Signals to store, in order. Some may have been consumed at once.
    pub signals_stored: Vec<SignalRow>,
    /// Signals that were stored before and are consumed now, with the task that gets each.
    pub signals_consumed: Vec<(u64, Node)>,
    /// Whether a signal came that a function may get which is running: its worker is to look.
    pub tells_listeners: bool,
    /// Functions all of whose memos go, before others are stored.
    pub memos_cleared: Vec<Node>,
    /// Memos that go, by task and key.
    pub memos_forgotten: Vec<(Node, String)>,
    /// Memos to store, in the place of those of the same key.
    pub memos: Vec<MemoRow>,
}

impl Changes {
    /// Whether the run itself inserted this task just now.
    #[must_use]
    pub fn is_inserted(&self, node: Node) -> bool {
        self.extras.as_ref().is_some_and(|extras| extras.inserted.contains(&node))
    }

    /// Timers that go: of tasks that moved on, and of the run.
    pub fn all_timers_cleared(&self) -> impl Iterator<Item = Node> {
        let of_run = self.extras.iter().flat_map(|extras| &extras.run_timers_cleared);
        self.timers_cleared.iter().copied().chain(of_run.map(|timer| timer.node()))
    }

    pub(super) fn extras(&mut self) -> &mut Extras {
        self.extras.get_or_insert_default()
    }
}

/// A timer to set for a task; the store adds the span to its own time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Timer {
    /// The task.
    pub node: Node,
    /// When it fires, counted from now.
    pub after: Duration,
}
