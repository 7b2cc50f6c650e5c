use std::cell::Cell;

use tokio::runtime::{Builder, Handle, Runtime};

use crate::ports::{BoxFuture, Spawner};

thread_local! {
    /// Whether this thread runs a step's blocking closure. The runtime's own marks do not tell:
    /// its handle can be had on such threads as well.
    static IN_BLOCKING_STEP: Cell<bool> = const { Cell::new(false) };
}

/// Whether the caller is a step's blocking closure.
pub(crate) fn is_in_blocking_step() -> bool {
    IN_BLOCKING_STEP.get()
}

/// Spawns on the user's runtime, and blocking closures on a pool of the engine's own, so that
/// neither can use up the other's threads.
pub(crate) struct TokioSpawner {
    runtime: Handle,
    /// Only its threads for blocking closures are used.
    pool: Option<Runtime>,
}

impl TokioSpawner {
    /// A spawner on the runtime of the caller, with room for `blocking_max` blocking closures.
    ///
    /// # Errors
    /// When the caller is on no runtime, or no thread can be had.
    pub(crate) fn new(blocking_max: usize) -> std::io::Result<Self> {
        let runtime = Handle::try_current().map_err(std::io::Error::other)?;
        let pool = Builder::new_current_thread()
            .thread_name("stepwell-step")
            .max_blocking_threads(blocking_max.max(1))
            .build()?;
        Ok(Self { runtime, pool: Some(pool) })
    }
}

impl Spawner for TokioSpawner {
    fn spawn(&self, future: BoxFuture<()>) {
        drop(self.runtime.spawn(future));
    }

    #[expect(clippy::disallowed_methods, reason = "this is the leaf that starts threads")]
    fn spawn_apart(&self, name: &str, future: BoxFuture<()>) {
        let apart = Builder::new_current_thread().enable_all().build();
        let thread = std::thread::Builder::new().name(format!("stepwell-{name}"));
        match apart {
            Ok(apart) => {
                if let Err(error) = thread.spawn(move || apart.block_on(future)) {
                    tracing::error!(%error, name, "no thread can be had");
                }
            }
            // Sharing the runtime is worse than a thread of its own and better than nothing.
            Err(error) => {
                tracing::error!(%error, name, "no runtime can be had");
                drop(self.runtime.spawn(future));
            }
        }
    }

    fn spawn_blocking(&self, closure: Box<dyn FnOnce() + Send + 'static>) {
        let Some(pool) = &self.pool else { return };
        drop(pool.spawn_blocking(move || {
            IN_BLOCKING_STEP.set(true);
            closure();
            IN_BLOCKING_STEP.set(false);
        }));
    }

    fn block_on(&self, future: BoxFuture<()>) {
        self.runtime.block_on(future);
    }
}

impl Drop for TokioSpawner {
    fn drop(&mut self) {
        if let Some(pool) = self.pool.take() {
            // Dropping a runtime waits for its threads, which is refused in async contexts.
            pool.shutdown_background();
        }
    }
}
