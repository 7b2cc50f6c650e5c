use std::panic::{AssertUnwindSafe, catch_unwind};
use std::sync::{Arc, Mutex};

use tokio::runtime::{Builder, Handle, Runtime};

use crate::ports::{BoxFuture, NoThread, Spawner};

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
        let mut pool = Builder::new_current_thread();
        pool.thread_name("stepwell-step").max_blocking_threads(blocking_max.max(1));
        Ok(Self { runtime, pool: Some(pool.build()?) })
    }
}

impl Spawner for TokioSpawner {
    fn spawn(&self, future: BoxFuture<()>) {
        drop(self.runtime.spawn(future));
    }

    #[expect(clippy::disallowed_methods, reason = "this is the leaf that starts threads")]
    fn spawn_apart(&self, name: &str, future: BoxFuture<()>) {
        let future = Arc::new(Mutex::new(Some(future)));
        let taken = Arc::clone(&future);
        let take = |future: &Mutex<Option<_>>| future.lock().ok().and_then(|mut held| held.take());
        let thread = std::thread::Builder::new().name(format!("stepwell-{name}"));
        let apart = Builder::new_current_thread().enable_all().build().and_then(|apart| {
            thread.spawn(move || take(&taken).map(|future: BoxFuture<()>| apart.block_on(future)))
        });
        // Sharing the runtime is worse than a thread of its own and better than nothing.
        if let Err(error) = apart
            && let Some(future) = take(&future)
        {
            tracing::error!(%error, name, "no thread can be had");
            drop(self.runtime.spawn(future));
        }
    }

    fn spawn_blocking(&self, closure: Box<dyn FnOnce() + Send + 'static>) -> Result<(), NoThread> {
        let Some(pool) = &self.pool else { return Err(NoThread) };
        // It panics when the operating system has no thread, and drops the closure.
        let spawned = catch_unwind(AssertUnwindSafe(|| drop(pool.spawn_blocking(closure))));
        spawned.map_err(|_| NoThread)
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_thread_that_cannot_be_had_is_told() {
        let runtime = Builder::new_current_thread().build().expect("a runtime");
        // No machine has room for such a stack.
        let pool = Builder::new_current_thread().thread_stack_size(1 << 60).build();
        let pool = Some(pool.expect("a runtime without threads"));
        let spawner = TokioSpawner { runtime: runtime.handle().clone(), pool };
        assert!(spawner.spawn_blocking(Box::new(|| {})).is_err());
    }
}
