//! What a thread is doing, and so who is behind a call or a wake that comes from it.

use std::cell::RefCell;
use std::sync::Arc;

use crate::ports::ClaimRef;

/// What a thread is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Doing {
    /// Something that has nothing to do with a function: a wake from here is foreign to it.
    Else,
    /// Polling a function, outside of its steps.
    Function {
        task: ClaimRef,
        /// Whether something outside of the function caused this poll.
        is_foreign: bool,
    },
    /// Executing the code of a step of a function.
    Step { task: ClaimRef, key: Arc<str> },
    /// Letting a function hear of something.
    Delivery,
}

thread_local! {
    static DOING: RefCell<Doing> = const { RefCell::new(Doing::Else) };
}

/// What this thread is doing.
pub(crate) fn doing() -> Doing {
    DOING.with_borrow(Clone::clone)
}

/// Marks what this thread does while it works.
pub(crate) fn while_doing<T>(doing: Doing, work: impl FnOnce() -> T) -> T {
    /// Also when the work panics.
    struct Before(Option<Doing>);
    impl Drop for Before {
        fn drop(&mut self) {
            if let Some(before) = self.0.take() {
                DOING.set(before);
            }
        }
    }
    let _before = Before(Some(DOING.replace(doing)));
    work()
}
