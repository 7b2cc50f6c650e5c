//! A panic in user code is a failed attempt, never a dead worker.

use std::any::Any;
use std::panic::{AssertUnwindSafe, catch_unwind};
use std::task::Poll;

use futures_util::FutureExt;
use stepwell_core::failure::{Failure, FailureKind};

use crate::ports::BoxFuture;

/// Calls user code and turns a panic into a failure.
pub(crate) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, Failure> {
    // What the closure captured is not used again after a panic, except through `Arc`s whose
    // locks user code cannot reach.
    catch_unwind(AssertUnwindSafe(call)).map_err(panicked)
}

/// Polls user code and turns a panic into a failure.
pub(crate) async fn guarded_async<T>(future: BoxFuture<T>) -> Result<T, Failure> {
    let mut future = DroppedQuietly(Some(future));
    let polled = std::future::poll_fn(|cx| match &mut future.0 {
        Some(future) => future.as_mut().poll(cx),
        None => Poll::Pending,
    });
    AssertUnwindSafe(polled).catch_unwind().await.map_err(panicked)
}

/// Drops user code that is stopped half-way. What panics then was told to end anyway, and must
/// not unwind into the attempt, which still has to hand in an outcome.
struct DroppedQuietly<T>(Option<BoxFuture<T>>);

impl<T> Drop for DroppedQuietly<T> {
    fn drop(&mut self) {
        if !drop_quietly(self.0.take()) {
            tracing::warn!("a step panicked while it was stopped");
        }
    }
}

/// Drops a value of user code, and says whether that went well. What it panics with may panic again
/// when it is dropped, and so on for ever, so it is never dropped.
pub(crate) fn drop_quietly<T>(value: T) -> bool {
    catch_unwind(AssertUnwindSafe(|| drop(value))).map_err(std::mem::forget).is_ok()
}

/// What code panicked with, as a failure.
pub(crate) fn panicked(panic: Box<dyn Any + Send>) -> Failure {
    let message = panic
        .downcast_ref::<&'static str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panicked with something that is no text".to_owned());
    drop_quietly(panic);
    Failure::new(FailureKind::Panic, "panic", &message)
}
