//! How blocking calls wait for async ones.

use std::future::Future;
use std::sync::{Arc, Mutex};

use stepwell_core::code::Code;
use tokio::runtime::{Builder, Handle, Runtime};

use super::super::builder::is_in_blocking_step;
use crate::engine::Error;
use crate::ports::BoxFuture;

/// Waits for futures: on a runtime of its own, or by turning virtual time.
pub(crate) trait Wait: Send + Sync {
    /// Whether the caller may wait here.
    fn check(&self) -> Result<(), Error>;

    /// Waits for a future to end.
    fn wait(&self, future: BoxFuture<()>);
}

/// Waits for a future and gives what it gave.
pub(super) fn wait_for<T, F>(wait: &dyn Wait, future: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    wait.check()?;
    let slot = Arc::new(Mutex::new(None));
    let filled = Arc::clone(&slot);
    wait.wait(Box::pin(async move {
        let answer = future.await;
        *filled.lock().expect("no holder of the lock panics") = Some(answer);
    }));
    let answer = slot.lock().expect("no holder of the lock panics").take();
    answer.unwrap_or_else(|| Err(Error::stopped()))
}

/// A runtime of the engine's own.
pub(super) struct OwnRuntime(Option<Runtime>);

impl OwnRuntime {
    /// A runtime with a thread per core.
    pub(super) fn new() -> Result<Self, Error> {
        refuse_async()?;
        let runtime = Builder::new_multi_thread().thread_name("stepwell").enable_all().build();
        let runtime = runtime.map_err(|error| Error::Unavailable {
            message: format!("no runtime can be had: {error}"),
        })?;
        Ok(Self(Some(runtime)))
    }
}

impl Wait for OwnRuntime {
    fn check(&self) -> Result<(), Error> {
        refuse_async()
    }

    fn wait(&self, future: BoxFuture<()>) {
        if let Some(runtime) = &self.0 {
            runtime.block_on(future);
        }
    }
}

impl Drop for OwnRuntime {
    fn drop(&mut self) {
        if let Some(runtime) = self.0.take() {
            // Dropping a runtime waits for its threads, which is refused in async contexts.
            runtime.shutdown_background();
        }
    }
}

/// Waiting inside an async context would hold up its thread, or panic deep inside the runtime.
fn refuse_async() -> Result<(), Error> {
    if Handle::try_current().is_ok() && !is_in_blocking_step() {
        let message = "`stepwell::blocking` was called inside an async context; use \
                       `stepwell::Engine` there";
        return Err(Error::refused(Code::BlockingInAsync, message));
    }
    Ok(())
}
