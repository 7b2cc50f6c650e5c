//! Wakers of functions and of their steps: they tell by what a function is woken.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::task::{Wake, Waker};

use tokio::sync::Notify;

use super::mark::{Doing, doing, while_doing};
use crate::ports::ClaimRef;

/// Wakes a function, and remembers who did.
#[derive(Default)]
pub(crate) struct FunctionWaker {
    is_woken: AtomicBool,
    /// The function woke itself: it is not quiet yet.
    is_restless: AtomicBool,
    /// Something outside of the function woke it.
    is_foreign: AtomicBool,
    woken: Notify,
}

impl Wake for FunctionWaker {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        match doing() {
            Doing::Else => self.is_foreign.store(true, Ordering::Release),
            Doing::Function { .. } => self.is_restless.store(true, Ordering::Release),
            Doing::Step { .. } | Doing::Delivery => {}
        }
        self.is_woken.store(true, Ordering::Release);
        self.woken.notify_one();
    }
}

impl FunctionWaker {
    /// The function is about to be polled. Says whether something outside of it caused that.
    pub(crate) fn begin_poll(&self) -> bool {
        self.is_woken.store(false, Ordering::Release);
        self.is_foreign.swap(false, Ordering::AcqRel)
    }

    /// Whether something outside has woken the function since its poll began. It may have seen
    /// that already.
    pub(crate) fn is_foreign(&self) -> bool {
        self.is_foreign.load(Ordering::Acquire)
    }

    /// Whether the function woke itself while it was polled.
    pub(crate) fn take_restless(&self) -> bool {
        self.is_restless.swap(false, Ordering::AcqRel)
    }

    pub(crate) fn is_woken(&self) -> bool {
        self.is_woken.load(Ordering::Acquire)
    }

    /// Completes when something wakes the function.
    pub(crate) async fn woken(&self) {
        while !self.is_woken() {
            self.woken.notified().await;
        }
    }
}

/// The waker that the code of a step gets: what it wakes is not foreign to the function.
pub(crate) fn step_waker(task: ClaimRef, key: Arc<str>, of_function: &Waker) -> Waker {
    struct StepWaker {
        doing: Doing,
        of_function: Waker,
    }
    impl Wake for StepWaker {
        fn wake(self: Arc<Self>) {
            self.wake_by_ref();
        }

        fn wake_by_ref(self: &Arc<Self>) {
            while_doing(self.doing.clone(), || self.of_function.wake_by_ref());
        }
    }
    let (doing, of_function) = (Doing::Step { task, key }, of_function.clone());
    Waker::from(Arc::new(StepWaker { doing, of_function }))
}
