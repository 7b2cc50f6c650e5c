//! What user code waits for: something outside the test, or what only the test can bring about.
//!
//! Nobody can look into a future. But whoever will wake one keeps a clone of its waker, so user
//! code is polled with a waker of its own, a [`Probe`], and clones of that are counted. Waits for
//! virtual time, for a [`Gate`](super::Gate) or for the engine take the task's waker instead: they
//! are not counted. What is counted may be woken from outside, and time stands still for it.

use std::cell::RefCell;
use std::future::Future;
use std::pin::Pin;
use std::sync::{Arc, Mutex};
use std::task::{Context, Poll, Wake, Waker};

thread_local! {
    /// The wakers of the user code that is being polled on this thread.
    static POLLED: RefCell<Option<Polled>> = const { RefCell::new(None) };
}

struct Polled {
    probe: Waker,
    task: Waker,
    steps: StepWakers,
}

/// The wakers of a function's steps, as waits that nobody outside can end keep them.
type StepWakers = Arc<Mutex<Vec<Waker>>>;

/// So many of them are kept; a step gets another one with every poll.
const STEP_WAKERS_MAX: usize = 1_000;

/// Wakes the task that some user code belongs to, and knows how many could do so.
pub(super) struct Probe {
    task: Mutex<Waker>,
    steps: StepWakers,
}

impl Wake for Probe {
    fn wake(self: Arc<Self>) {
        self.wake_by_ref();
    }

    fn wake_by_ref(self: &Arc<Self>) {
        self.task().wake();
    }
}

impl Probe {
    pub(super) fn new() -> Arc<Self> {
        Arc::new(Self { task: Mutex::new(Waker::noop().clone()), steps: Arc::default() })
    }

    /// Polls user code.
    pub(super) fn poll<F: Future + ?Sized>(
        self: &Arc<Self>,
        future: Pin<&mut F>,
        cx: &mut Context<'_>,
    ) -> Poll<F::Output> {
        self.task.lock().expect("no holder of the lock panics").clone_from(cx.waker());
        let probe = Waker::from(Arc::clone(self));
        let (task, steps) = (cx.waker().clone(), Arc::clone(&self.steps));
        let polled = Polled { probe: probe.clone(), task, steps };
        let _restored = Restore(POLLED.replace(Some(polled)));
        future.poll(&mut Context::from_waker(&probe))
    }

    /// The waker of the task that the user code belongs to.
    pub(super) fn task(&self) -> Waker {
        self.task.lock().expect("no holder of the lock panics").clone()
    }

    /// The wakers of everything in it that waits for what nobody outside can end.
    pub(super) fn inner_wakers(&self) -> Vec<Waker> {
        let steps = self.steps.lock().expect("no holder of the lock panics");
        steps.iter().cloned().chain([self.task()]).collect()
    }

    /// Whether anybody outside can wake the user code, of which `n_own` handles are known.
    pub(super) fn is_held_outside(self: &Arc<Self>, n_own: usize) -> bool {
        Arc::strong_count(self) > n_own
    }
}

/// Puts back what was there before, also when user code panics.
struct Restore(Option<Polled>);

impl Drop for Restore {
    fn drop(&mut self) {
        POLLED.set(self.0.take());
    }
}

/// Polls the code of a step of a function, which is user code of its own.
pub(super) fn poll_step(
    cx: &Context<'_>,
    waker_from: &dyn Fn(&Waker) -> Waker,
    poll: &mut dyn FnMut(&mut Context<'_>),
) {
    let (probe, task) = (waker_from(cx.waker()), waker_from(&inner_waker(cx)));
    let steps = POLLED.with_borrow(|polled| polled.as_ref().map(|of| Arc::clone(&of.steps)));
    let steps = steps.unwrap_or_default();
    {
        let mut kept = steps.lock().expect("no holder of the lock panics");
        let n_old = (kept.len() + 1).saturating_sub(STEP_WAKERS_MAX);
        kept.drain(..n_old);
        kept.push(task.clone());
    }
    let _restored = Restore(POLLED.replace(Some(Polled { probe: probe.clone(), task, steps })));
    poll(&mut Context::from_waker(&probe));
}

/// The waker to keep for a wait that nobody outside can end.
pub(super) fn inner_waker(cx: &Context<'_>) -> Waker {
    POLLED.with_borrow(|polled| match polled {
        // A combinator such as `join_all` wraps the probe; then its waker is the one to wake.
        Some(polled) if cx.waker().will_wake(&polled.probe) => polled.task.clone(),
        _ => cx.waker().clone(),
    })
}

/// A wait that nobody outside can end.
pub(super) struct InnerWait<F>(pub(super) F);

impl<F: Future + Unpin> Future for InnerWait<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<F::Output> {
        let waker = inner_waker(cx);
        Pin::new(&mut self.0).poll(&mut Context::from_waker(&waker))
    }
}
