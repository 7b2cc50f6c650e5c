//! The thread on which a test's engines live.
//!
//! It is no thread of any runtime, so it may wait, and what is polled on it never meets the limits
//! that a runtime sets its own tasks: a test inside `#[tokio::test]` sees what a plain one sees.
//! Steps find a runtime there for the timers, sockets and tasks of tokio they may use.

use std::any::Any;
use std::cell::Cell;
use std::panic::{AssertUnwindSafe, catch_unwind, resume_unwind};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{self, RecvTimeoutError};
use std::thread::JoinHandle;
use std::time::Duration;

use tokio::runtime::{Builder, Handle, Runtime};

use super::activity::Activity;
use super::stuck::{self, Stuck};

thread_local! {
    static IS_DRIVER: Cell<bool> = const { Cell::new(false) };
}

/// Something to bring about, on the driving thread.
pub(super) type Goal = Box<dyn FnOnce() -> Result<(), Stuck> + Send>;

/// How it went, or what it panicked with.
pub(super) type Outcome = Result<Result<(), Stuck>, Box<dyn Any + Send>>;

type Request = (Goal, mpsc::Sender<Outcome>, tracing::Dispatch);

/// The driving thread.
pub(super) struct Driver {
    requests: Option<mpsc::Sender<Request>>,
    thread: Option<JoinHandle<()>>,
    reactor: Option<Runtime>,
    /// It will not come back, so nobody waits for its end.
    hangs: AtomicBool,
    activity: Activity,
}

impl Driver {
    #[expect(clippy::disallowed_methods, reason = "a test's engines live on a thread of their own")]
    pub(super) fn start(activity: Activity) -> Self {
        let reactor = Builder::new_multi_thread().worker_threads(1).enable_all().build();
        let reactor = reactor.expect("a test machine has a thread to spare");
        let (requests, asked) = mpsc::channel::<Request>();
        let handle = reactor.handle().clone();
        let work = move || {
            let _entered = handle.enter();
            IS_DRIVER.set(true);
            for (goal, answer_to, dispatch) in asked {
                let reach = || catch_unwind(AssertUnwindSafe(goal));
                // The test may have gone on meanwhile.
                let _ = answer_to.send(tracing::dispatcher::with_default(&dispatch, reach));
            }
        };
        let thread = std::thread::Builder::new().name("stepwell-test".to_owned()).spawn(work);
        let thread = thread.expect("a test machine has a thread to spare");
        let (requests, thread) = (Some(requests), Some(thread));
        Self { requests, thread, reactor: Some(reactor), hangs: AtomicBool::new(false), activity }
    }

    /// The runtime for timers, sockets and tasks of tokio's.
    pub(super) fn reactor(&self) -> Handle {
        let reactor = self.reactor.as_ref().expect("it is there until the driver is dropped");
        reactor.handle().clone()
    }

    /// Whether the caller is polled by a driver: it may not wait for one.
    pub(super) fn is_current() -> bool {
        IS_DRIVER.get()
    }

    /// Waits until a goal is reached. Whoever reaches it earlier may say so by the given sender.
    pub(super) fn reach(
        &self,
        goal: Goal,
        (answer_to, answer): (mpsc::Sender<Outcome>, mpsc::Receiver<Outcome>),
        real_time_max: Duration,
    ) -> Result<(), Stuck> {
        let dispatch = tracing::dispatcher::get_default(Clone::clone);
        let requests = self.requests.as_ref().expect("it is there until the driver is dropped");
        requests.send((goal, answer_to, dispatch)).expect("the thread ends with the driver");
        loop {
            match answer.recv_timeout(real_time_max) {
                Ok(Ok(reached)) => return reached,
                Ok(Err(panic)) => resume_unwind(panic),
                Err(RecvTimeoutError::Disconnected) => unreachable!("a goal is always answered"),
                Err(RecvTimeoutError::Timeout) => {
                    if let Some(what) = self.activity.longer_than(real_time_max) {
                        self.hangs.store(true, Ordering::Relaxed);
                        return Err(stuck::hangs(&what, real_time_max));
                    }
                }
            }
        }
    }
}

impl Drop for Driver {
    fn drop(&mut self) {
        drop(self.requests.take());
        let thread = self.thread.take().filter(|_| !self.hangs.load(Ordering::Relaxed));
        // A step may hold the last handle; then this is the driving thread itself.
        if let Some(thread) = thread.filter(|_| !Self::is_current()) {
            // What it panicked with was told to the test.
            let _ = thread.join();
        }
        if let Some(reactor) = self.reactor.take() {
            // Dropping a runtime waits for its threads, which is refused in async tests.
            reactor.shutdown_background();
        }
    }
}
