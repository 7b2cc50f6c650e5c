use std::future::Future;
use std::pin::pin;
use std::task::{Context, Waker};

use tokio::runtime::Handle;
use tokio::task::coop::consume_budget;

/// More than any runtime lets a task do in one turn.
const BUDGET_MAX: usize = 1_024;

/// Whether the caller is polled by a runtime, so that whoever blocks it holds up others.
///
/// The runtime's handle can be had on threads made for blocking as well. What tells them apart is
/// the budget: only what is polled has one, and uses it up.
pub(crate) fn is_polled() -> bool {
    let mut cx = Context::from_waker(Waker::noop());
    let mut is_used_up = || pin!(consume_budget()).poll(&mut cx).is_pending();
    Handle::try_current().is_ok() && (0..BUDGET_MAX).any(|_| is_used_up())
}

#[cfg(test)]
mod tests {
    use tokio::runtime::{Builder, Runtime};
    use tokio::task::{LocalSet, block_in_place};

    use super::*;

    fn runtimes() -> [Runtime; 2] {
        let current_thread = Builder::new_current_thread().build();
        let multi_thread = Builder::new_multi_thread().worker_threads(1).build();
        [current_thread, multi_thread].map(|runtime| runtime.expect("a runtime"))
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this is about the runtime's own tasks")]
    fn futures_and_tasks_are_polled() {
        for runtime in runtimes() {
            assert!(runtime.block_on(async { is_polled() }));
            let task = runtime.block_on(async { tokio::spawn(async { is_polled() }).await });
            assert!(task.expect("it ends"));
            assert!(LocalSet::new().block_on(&runtime, async { is_polled() }));
        }
    }

    #[test]
    #[expect(clippy::disallowed_methods, reason = "this is about the runtime's own threads")]
    fn threads_made_for_blocking_are_not_polled() {
        assert!(!is_polled());
        for runtime in runtimes() {
            let blocking = runtime.block_on(async { tokio::task::spawn_blocking(is_polled).await });
            assert!(!blocking.expect("it ends"));
            let _entered = runtime.enter();
            assert!(!is_polled());
        }
        let [_, multi_thread] = runtimes();
        let in_place = multi_thread.block_on(async {
            tokio::spawn(async { (is_polled(), block_in_place(is_polled)) }).await
        });
        assert_eq!(in_place.expect("it ends"), (true, false));
    }
}
