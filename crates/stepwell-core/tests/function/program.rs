//! A function that is played by hand: its journal, and the time.

use std::cell::Cell;
use std::rc::Rc;
use std::task::Waker;

use stepwell_core::decide::Listening;
use stepwell_core::failure::{Failure, FailureKind};
use stepwell_core::function::{
    Answer, Call, Completion, Journal, MemoWrite, Moment, OpId, Past, Turn, Value,
};
use stepwell_core::id::Node;
use stepwell_core::retry::Retry;
use stepwell_core::run::{Attributes, MemoRow};
use stepwell_core::time::Timestamp;

/// A value that counts how often it and its like are copied.
pub(crate) struct Counted(pub(crate) u64, Rc<Cell<usize>>);

impl Clone for Counted {
    fn clone(&self) -> Self {
        self.1.set(self.1.get() + 1);
        Self(self.0, Rc::clone(&self.1))
    }
}

impl Value for Counted {
    fn n_bytes(&self) -> usize {
        8
    }
}

pub(crate) type Stored = (MemoRow, Option<Counted>);

/// A function that runs.
pub(crate) struct Program {
    pub(crate) journal: Journal<Counted>,
    n_copies: Rc<Cell<usize>>,
    pub(crate) n_turns: usize,
}

pub(crate) const NOW: Timestamp = Timestamp::EPOCH;

impl Program {
    pub(crate) fn new(memos: Vec<Stored>) -> Self {
        let n_copies = memos.iter().find_map(|(_, value)| Some(Rc::clone(&value.as_ref()?.1)));
        let n_copies = n_copies.unwrap_or_default();
        n_copies.set(0);
        let (began_at, waits) = (NOW, Vec::new());
        let past = Past { node: Node(0), began_at, memos, waits, has_signals: false };
        let mut journal = Journal::new(past);
        journal.begin_poll(false);
        Self { journal, n_copies, n_turns: 0 }
    }

    /// How often values were copied.
    pub(crate) fn n_copies(&self) -> usize {
        self.n_copies.get()
    }

    /// A step that is called and awaited.
    pub(crate) fn step(&mut self, name: &str) -> OpId {
        self.call(name, Call::Step { retry: Retry::never(), timeout: None })
    }

    /// A wait for a signal of its name.
    pub(crate) fn wait(&mut self, name: &str) -> OpId {
        self.call(name, Call::Wait { signals: vec![name.into()], matching: Attributes::new() })
    }

    fn call(&mut self, name: &str, call: Call) -> OpId {
        let key = self.journal.take_key(name, false);
        let id = self.journal.call(key, call, None, NOW);
        assert_eq!(self.poll(id), None);
        id
    }

    /// Polls an operation that is not to be executed; what it gave, if it is over.
    pub(crate) fn poll(&mut self, id: OpId) -> Option<Result<u64, ()>> {
        match self.journal.poll(id, Waker::noop()) {
            Answer::Ready(completion) => Some(read(completion)),
            Answer::Pending => None,
            answer => panic!("{:?}", std::mem::discriminant(&answer)),
        }
    }

    /// The code of a step gives this.
    pub(crate) fn execute(&mut self, id: OpId, gives: u64) {
        let answer = self.journal.poll(id, Waker::noop());
        assert!(matches!(answer, Answer::Execute), "it is to be executed");
        let value = Counted(gives, Rc::clone(&self.n_copies));
        self.journal.executed(id, Ok(value), NOW, 0);
    }

    /// The code of a step fails for good.
    pub(crate) fn fail(&mut self, id: OpId) {
        let answer = self.journal.poll(id, Waker::noop());
        assert!(matches!(answer, Answer::Execute), "it is to be executed");
        let failure = Failure::new(FailureKind::Error, "", "boom");
        self.journal.executed(id, Err(failure), NOW, 0);
    }

    /// Polls a step. If it is to be executed, its code gives this, and the answer is true.
    pub(crate) fn poll_or_execute(&mut self, id: OpId, gives: u64) -> bool {
        let is_executed = matches!(self.journal.poll(id, Waker::noop()), Answer::Execute);
        if is_executed {
            self.execute(id, gives);
        }
        is_executed
    }

    /// The next turn of a function that is quiet. A wake is a poll.
    pub(crate) fn turn(&mut self) -> Turn<Counted> {
        self.n_turns += 1;
        let turn = self.journal.turn(Moment { now: NOW, may_start: true, is_woken: false });
        if matches!(turn, Turn::Wake(_)) {
            self.journal.begin_poll(false);
        }
        turn
    }

    /// The next turn is one in which something is heard, begun or ended.
    pub(crate) fn wakes(&mut self) {
        let turn = self.turn();
        assert!(matches!(turn, Turn::Wake(_)), "{}", name(&turn));
    }

    pub(crate) fn stores(&mut self) -> MemoWrite<Counted> {
        match self.turn() {
            Turn::Store(write) => write,
            turn => panic!("{}", name(&turn)),
        }
    }

    pub(crate) fn listens(&mut self) -> Listening {
        match self.turn() {
            Turn::Listen(listening) => listening,
            turn => panic!("{}", name(&turn)),
        }
    }

    pub(crate) fn rests(&mut self) {
        let turn = self.turn();
        assert!(matches!(turn, Turn::Rest { .. }), "{}", name(&turn));
    }

    /// The store has this signal for a wait.
    pub(crate) fn hears(&mut self, id: OpId, brings: u64) {
        let value = Counted(brings, Rc::clone(&self.n_copies));
        self.journal.listened(Some((id, Some(value), NOW)), NOW);
    }
}

fn read(completion: Completion<Counted>) -> Result<u64, ()> {
    completion.map(|value| value.map_or(0, |value| value.0)).map_err(drop)
}

/// What a turn is.
fn name<V>(turn: &Turn<V>) -> &'static str {
    match turn {
        Turn::Wake(_) => "wake",
        Turn::Store(_) => "store",
        Turn::Listen(_) => "listen",
        Turn::Rest { .. } => "rest",
        Turn::Suspend(_) => "suspend",
        Turn::Release => "release",
    }
}
