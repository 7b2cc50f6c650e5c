//! The journal of a function that runs, shared between its operations and whoever polls it.

use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, OnceLock};

use stepwell_core::function::{Journal, MemoWrite, Past, Value};
use stepwell_core::id::Node;
use stepwell_core::time::Timestamp;

use super::waker::FunctionWaker;
use crate::ports::{ClaimRef, History, MemoRequest, Payload, StoredMemo};

impl Value for Payload {
    fn n_bytes(&self) -> usize {
        self.bytes.len()
    }
}

/// What a function that runs has done so far, and what it does.
pub(crate) struct FunctionState {
    journal: Mutex<Journal<Payload>>,
    /// Whether the task has lost workers, which the first memo forgives.
    has_losses: AtomicBool,
    /// Who woke it, once it is polled by that.
    waker: OnceLock<Arc<FunctionWaker>>,
    /// Whether blocking code was told to stop, and nothing is to be started any more.
    is_released: AtomicBool,
}

impl FunctionState {
    /// The state of a function of which this is known, or whose first execution began then.
    pub(crate) fn new(node: Node, history: Option<Box<History>>, began_at: Timestamp) -> Self {
        let history = history.map_or_else(
            || History {
                began_at,
                memos: Vec::new(),
                waits: Vec::new(),
                has_suspended: false,
                has_losses: false,
                has_signals: false,
            },
            |history| *history,
        );
        let memos = history.memos.into_iter().map(|memo| (memo.row, memo.payload)).collect();
        let past = Past {
            node,
            began_at: history.began_at,
            memos,
            waits: history.waits,
            has_signals: history.has_signals,
        };
        Self {
            journal: Mutex::new(Journal::new(past)),
            has_losses: AtomicBool::new(history.has_losses),
            waker: OnceLock::new(),
            is_released: AtomicBool::new(false),
        }
    }

    pub(crate) fn journal(&self) -> MutexGuard<'_, Journal<Payload>> {
        self.journal.lock().expect("no holder of the lock panics")
    }

    /// The function is polled with this from now on.
    pub(crate) fn set_waker(&self, waker: &Arc<FunctionWaker>) {
        let _ = self.waker.set(Arc::clone(waker));
    }

    /// Whether something outside of the function woke it since its poll began.
    pub(crate) fn is_woken_by_foreign(&self) -> bool {
        self.waker.get().is_some_and(|waker| waker.is_foreign())
    }

    /// What is to be stored, as a request.
    pub(crate) fn request(&self, claim: ClaimRef, write: MemoWrite<Payload>) -> MemoRequest {
        let memos = write.memos.into_iter();
        let memos = memos.map(|(row, payload)| StoredMemo { row, payload }).collect();
        let forgives = self.has_losses.swap(false, Ordering::AcqRel);
        MemoRequest { claim, memos, forgives }
    }

    /// Refuses something that is called inside of a step.
    pub(crate) fn refuse_in_step(&self, name: &str, step: &str) {
        self.journal().refuse(&format!(
            "{name:?} is called inside of step {step:?}; a step has no steps of its own: call one \
             after the other"
        ));
    }

    /// Blocking code was told to stop without anything to wait for: its task is handed back.
    pub(crate) fn release(&self) {
        self.is_released.store(true, Ordering::Release);
    }

    pub(crate) fn is_released(&self) -> bool {
        self.is_released.load(Ordering::Acquire)
    }
}
