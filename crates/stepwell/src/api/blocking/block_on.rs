//! How calls of the blocking engine wait for those of the async one.

use std::future::Future;
use std::sync::{Arc, Mutex};

use stepwell_core::code::Code;
use tokio::runtime::{Builder, Runtime};

use crate::error::Error;
use crate::ports::BoxFuture;
use crate::wiring::is_polled;

/// Blocks the caller until a future has ended: on a runtime of its own, or by turning virtual time.
pub(crate) trait BlockOn: Send + Sync {
    /// Refuses callers that must not block.
    fn check(&self) -> Result<(), Error>;

    /// Blocks until the future has ended. On virtual time it may never end; then the answer says
    /// why.
    fn block_on(&self, future: BoxFuture<()>) -> Result<(), Stuck>;
}

/// Why a future on virtual time cannot end.
pub(crate) struct Stuck(pub(crate) String);

/// Blocks until a future has ended and gives its answer.
///
/// # Panics
/// At the caller's line, when a test waits for what cannot happen.
#[track_caller]
pub(super) fn answer_of<T, F>(runtime: &dyn BlockOn, future: F) -> Result<T, Error>
where
    T: Send + 'static,
    F: Future<Output = Result<T, Error>> + Send + 'static,
{
    runtime.check()?;
    let answer = Arc::new(Mutex::new(None));
    let answer_to = Arc::clone(&answer);
    let ended = runtime.block_on(Box::pin(async move {
        let answer = future.await;
        *answer_to.lock().expect("no holder of the lock panics") = Some(answer);
    }));
    if let Err(Stuck(why)) = ended {
        panic!("{why}");
    }
    let answer = answer.lock().expect("no holder of the lock panics").take();
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

impl BlockOn for OwnRuntime {
    fn check(&self) -> Result<(), Error> {
        refuse_async()
    }

    fn block_on(&self, future: BoxFuture<()>) -> Result<(), Stuck> {
        if let Some(runtime) = &self.0 {
            runtime.block_on(future);
        }
        Ok(())
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

/// Blocking inside an async context would hold up its thread, or panic deep inside the runtime.
fn refuse_async() -> Result<(), Error> {
    if is_polled() {
        let message = "`stepwell::blocking` was called inside an async context; use \
                       `stepwell::Engine` there, or a thread made for blocking, such as that of \
                       `tokio::task::spawn_blocking`";
        return Err(Error::refused(Code::BlockingInAsync, message));
    }
    Ok(())
}
