//! Blocking code on a thread of its own, in turn with everything else.
//!
//! While the code runs, the scheduler waits; while the code waits for a future, the scheduler goes
//! on. So blocking steps keep the fixed order that a test relies on, and may wait for whatever the
//! scheduler brings about.

use std::cell::RefCell;
use std::sync::{Arc, Condvar, Mutex, MutexGuard};
use std::time::Duration;

use tokio::runtime::Handle;

use crate::ports::NoThread;

thread_local! {
    /// The call whose closure this thread runs.
    static CURRENT: RefCell<Option<Arc<BlockingCall>>> = const { RefCell::new(None) };
}

/// A closure on a thread of its own.
#[derive(Default)]
pub(super) struct BlockingCall {
    state: Mutex<State>,
    changed: Condvar,
}

#[derive(Default)]
struct State {
    turn: Turn,
    /// How the wait for a future ended.
    answer: Option<WaitEnd>,
}

#[derive(Clone, Copy, Default, PartialEq, Eq)]
enum Turn {
    /// The closure runs, and the scheduler waits for it.
    #[default]
    Running,
    /// The closure runs, and the scheduler has gone on without it.
    Overdue,
    /// The closure waits for a future, or has ended.
    Resting,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum WaitEnd {
    Answered,
    /// The future was dropped, as in a crash.
    Abandoned,
}

/// What a closure unwinds with when its engine crashes while it waits.
struct Crashed;

impl BlockingCall {
    /// Runs a closure, and waits until it ends or waits for a future, or for as long as given.
    #[expect(clippy::disallowed_methods, reason = "blocking code needs a thread")]
    pub(super) fn start(
        closure: Box<dyn FnOnce() + Send + 'static>,
        span: Duration,
    ) -> Result<(), NoThread> {
        let call = Arc::new(Self::default());
        let (ended, reactor) = (Ended(Arc::clone(&call)), Handle::try_current().ok());
        let thread = std::thread::Builder::new().name("stepwell-step".to_owned());
        let run = move || {
            let _entered = reactor.as_ref().map(Handle::enter);
            CURRENT.set(Some(Arc::clone(&ended.0)));
            closure();
        };
        thread.spawn(run).map_err(|_| NoThread)?;
        call.wait(span);
        Ok(())
    }

    /// The call that this thread belongs to.
    pub(super) fn current() -> Option<Arc<Self>> {
        CURRENT.with_borrow(Clone::clone)
    }

    pub(super) fn is_running(&self) -> bool {
        self.state().turn != Turn::Resting
    }

    pub(super) fn is_overdue(&self) -> bool {
        self.state().turn == Turn::Overdue
    }

    /// Waits, on the closure's thread, for a future that was given to the scheduler. `spawn` gets
    /// what must be kept beside that future.
    pub(super) fn wait_for(self: &Arc<Self>, spawn: impl FnOnce(Answer)) {
        self.state().answer = None;
        // The scheduler waits for this thread until it says that it waits, so it cannot find
        // itself idle before the future is there.
        spawn(Answer { call: Arc::clone(self), is_given: false });
        let mut state = self.state();
        if state.answer.is_none() {
            state.turn = Turn::Resting;
            self.changed.notify_all();
        }
        let waited = self.changed.wait_while(state, |state| state.answer.is_none());
        if waited.expect("no holder of the lock panics").answer == Some(WaitEnd::Abandoned) {
            std::panic::resume_unwind(Box::new(Crashed));
        }
    }

    /// Waits, on the scheduler's thread, until the closure does not run any more.
    fn wait(&self, span: Duration) {
        let is_running = |state: &mut State| state.turn == Turn::Running;
        let waited = self.changed.wait_timeout_while(self.state(), span, is_running);
        let (mut state, _) = waited.expect("no holder of the lock panics");
        if is_running(&mut state) {
            state.turn = Turn::Overdue;
        }
    }

    fn take_turn(&self, turn: Turn, answer: Option<WaitEnd>) {
        *self.state() = State { turn, answer };
        self.changed.notify_all();
    }

    fn state(&self) -> MutexGuard<'_, State> {
        self.state.lock().expect("no holder of the lock panics")
    }
}

/// Gives a waiting closure its turn again. Dropped before, it lets the closure unwind.
pub(super) struct Answer {
    call: Arc<BlockingCall>,
    is_given: bool,
}

impl Answer {
    /// Lets the closure run, and waits for it as [`BlockingCall::start`] does.
    pub(super) fn give(mut self, span: Duration) {
        self.is_given = true;
        self.call.take_turn(Turn::Running, Some(WaitEnd::Answered));
        self.call.wait(span);
    }
}

impl Drop for Answer {
    fn drop(&mut self) {
        if !self.is_given {
            self.call.take_turn(Turn::Running, Some(WaitEnd::Abandoned));
        }
    }
}

/// Says that the closure has ended, also if it panicked or never began.
struct Ended(Arc<BlockingCall>);

impl Drop for Ended {
    fn drop(&mut self) {
        self.0.take_turn(Turn::Resting, None);
    }
}
