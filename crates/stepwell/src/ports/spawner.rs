//! Tasks and threads as a port.

use std::future::Future;
use std::pin::Pin;
use std::task::{Context, Waker};

/// A boxed future that can be moved between threads.
pub type BoxFuture<T> = Pin<Box<dyn Future<Output = T> + Send + 'static>>;

/// The operating system has no thread to spare.
#[derive(Clone, Copy, Debug, thiserror::Error)]
#[error("no thread can be had")]
pub struct NoThread;

/// Starts things that run beside each other. Nothing else in the engine may.
pub trait Spawner: Send + Sync + 'static {
    /// Runs a future to its end beside everything else.
    fn spawn(&self, future: BoxFuture<()>);

    /// Runs a future where user code cannot hold it up: on a thread of its own, or in turn with
    /// everything else where there is only one thread.
    fn spawn_apart(&self, name: &str, future: BoxFuture<()>);

    /// Runs a closure that may block, on a thread made for that.
    ///
    /// # Errors
    /// When there is no thread; the closure was not called then.
    fn spawn_blocking(&self, closure: Box<dyn FnOnce() + Send + 'static>) -> Result<(), NoThread>;

    /// Waits for a future inside such a closure.
    fn block_on(&self, future: BoxFuture<()>);

    /// The waker to keep for a wait of user code that only the engine can end: the one it was
    /// polled with, unless tests have to tell such waits from others.
    fn engine_waker(&self, cx: &Context<'_>) -> Waker {
        cx.waker().clone()
    }

    /// Polls the code of a step of a function with a waker made from the one it was polled with.
    /// Tests give it another one for waits that only the engine can end.
    fn poll_step(
        &self,
        cx: &Context<'_>,
        waker_from: &dyn Fn(&Waker) -> Waker,
        poll: &mut dyn FnMut(&mut Context<'_>),
    ) {
        poll(&mut Context::from_waker(&waker_from(cx.waker())));
    }

    /// A wait of user code that only the engine can end. Where time is virtual it may move on
    /// meanwhile; everywhere else this is the future itself.
    fn engine_wait(&self, future: BoxFuture<()>) -> BoxFuture<()> {
        future
    }
}
