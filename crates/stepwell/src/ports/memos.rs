//! What functions have done so far: storing it while they run, and reading it when they go on.

use async_trait::async_trait;
use stepwell_core::decide::Listening;
use stepwell_core::id::RunKey;
use stepwell_core::run::{MemoRow, WaitRow};
use stepwell_core::time::Timestamp;

use super::{ClaimRef, Payload, StoreError};

/// A memo with what lies beside it: the value of a step, the input of a round, or, where one is
/// read, what ended a wait.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct StoredMemo {
    /// The memo.
    pub row: MemoRow,
    /// What lies beside it.
    pub payload: Option<Payload>,
}

/// What an execution finds of those before it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct History {
    /// When the first execution of the task began.
    pub began_at: Timestamp,
    /// What its function has done or begun, in the order of the keys.
    pub memos: Vec<StoredMemo>,
    /// What it waits for, oldest first.
    pub waits: Vec<WaitRow>,
    /// Whether an execution was suspended, so that its conditions were asked.
    pub has_suspended: bool,
    /// Whether workers were lost with it.
    pub has_losses: bool,
    /// Whether signals lie there that nobody got.
    pub has_signals: bool,
}

/// Memos of a running function.
#[derive(Clone, Debug)]
pub struct MemoRequest {
    /// The claim that the function runs under.
    pub claim: ClaimRef,
    /// The memos; each takes the place of one of its key. When they are stored is the store's to
    /// say.
    pub memos: Vec<StoredMemo>,
    /// Whether the task has lost workers before, which it is forgiven now.
    pub forgives: bool,
}

/// What became of memos.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum MemoAnswer {
    /// They are stored, since this moment of the store's time.
    Stored(Timestamp),
    /// The claim no longer held the task; nothing was changed.
    NotMine,
}

/// A running function waits.
#[derive(Clone, Debug)]
pub struct ListenRequest {
    /// The claim that the function runs under.
    pub claim: ClaimRef,
    /// What it waits for.
    pub listening: Listening,
}

/// What a running function hears of.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Heard {
    /// The place of the wait that is over, as the function gave it.
    pub place: u32,
    /// What a signal brought, or that the deadline passed; `None` for a sleep or a pause.
    pub payload: Option<Payload>,
    /// When that was stored.
    pub at: Timestamp,
}

/// What became of a request to listen.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ListenAnswer {
    /// It waits, and hears of this, which was recorded under the number that it gave.
    Listening(Option<Heard>),
    /// The claim no longer held the task; nothing was changed.
    NotMine,
}

/// Memos of functions.
#[async_trait]
pub trait Memos {
    /// Stores memos of running functions, each request as a whole and fenced by its own token, in
    /// one transaction. What is acknowledged is durable. Neither the run nor its tasks are changed,
    /// but for a task that has lost workers: coming this far, it is forgiven.
    ///
    /// Repeating a request whose answer was lost is safe: memos that are there under its token are
    /// answered as stored.
    async fn store_memos(&self, requests: Vec<MemoRequest>) -> Result<Vec<MemoAnswer>, StoreError>;

    /// Opens and gives up waits of functions that are running, such that they wait for just what
    /// the request names, and gives each at most one thing that it waited for: a signal, or that a
    /// deadline passed. That is recorded as a memo in the same transaction.
    ///
    /// A hint tells of signals that came for functions which listen: [`Hint::Received`]. They are
    /// given when the function listens again.
    ///
    /// [`Hint::Received`]: super::Hint::Received
    async fn listen(&self, requests: Vec<ListenRequest>) -> Result<Vec<ListenAnswer>, StoreError>;

    /// All memos of a run, in the order of tasks and keys.
    async fn memos(&self, run: RunKey) -> Result<Vec<StoredMemo>, StoreError>;
}
