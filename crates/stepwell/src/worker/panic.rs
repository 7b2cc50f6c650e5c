//! A panic in user code is a failed attempt, never a dead worker.

use std::any::Any;
use std::future::Future;
use std::panic::{AssertUnwindSafe, catch_unwind};

use futures_util::FutureExt;
use stepwell_core::failure::{Failure, FailureKind};

/// Calls user code and turns a panic into a failure.
pub(super) fn guarded<T>(call: impl FnOnce() -> T) -> Result<T, Failure> {
    // What the closure captured is not used again after a panic, except through `Arc`s whose
    // locks user code cannot reach.
    catch_unwind(AssertUnwindSafe(call)).map_err(|panic| failure(panic.as_ref()))
}

/// Polls user code and turns a panic into a failure.
pub(super) async fn guarded_async<T>(future: impl Future<Output = T>) -> Result<T, Failure> {
    AssertUnwindSafe(future).catch_unwind().await.map_err(|panic| failure(panic.as_ref()))
}

fn failure(panic: &(dyn Any + Send)) -> Failure {
    let message = panic
        .downcast_ref::<&'static str>()
        .map(|text| (*text).to_owned())
        .or_else(|| panic.downcast_ref::<String>().cloned())
        .unwrap_or_else(|| "panicked with something that is no text".to_owned());
    Failure::new(FailureKind::Panic, "panic", &message)
}
