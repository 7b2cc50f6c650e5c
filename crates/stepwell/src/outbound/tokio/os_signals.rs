//! Signals of the operating system that tell the process to end.

use std::future::Future;

use tokio::signal::ctrl_c;

/// Waits until the process is told to end: by SIGTERM, as service managers and orchestrators
/// send it, or by Ctrl-C. Made for [`Engine::stop_when`](crate::Engine::stop_when).
///
/// SIGTERM is caught from the call on, not only from the first wait. After the first signal a
/// Ctrl-C ends the process at once, as users who press it twice expect. Nothing is lost by that:
/// steps that were running are executed again elsewhere.
///
/// # Panics
/// When it is called outside of a tokio runtime.
pub fn shutdown_signal() -> impl Future<Output = ()> + Send {
    let terminated = termination();
    async {
        tokio::select! {
            () = terminated => {}
            () = ctrl_c_pressed() => {}
        }
        #[expect(clippy::disallowed_methods, reason = "the second signal comes beside the stop")]
        drop(tokio::spawn(async {
            ctrl_c_pressed().await;
            std::process::exit(INTERRUPTED);
        }));
    }
}

/// The exit code that shells give a process ended by Ctrl-C.
const INTERRUPTED: i32 = 130;

async fn ctrl_c_pressed() {
    if let Err(error) = ctrl_c().await {
        tracing::warn!(%error, "Ctrl-C cannot be waited for");
        std::future::pending::<()>().await;
    }
}

#[cfg(unix)]
fn termination() -> impl Future<Output = ()> + Send {
    use tokio::signal::unix::{SignalKind, signal};

    let terminated = signal(SignalKind::terminate());
    async {
        match terminated {
            Ok(mut terminated) => drop(terminated.recv().await),
            // Without a handler SIGTERM ends the process by itself.
            Err(error) => {
                tracing::warn!(%error, "SIGTERM cannot be waited for");
                std::future::pending::<()>().await;
            }
        }
    }
}

#[cfg(not(unix))]
fn termination() -> impl Future<Output = ()> + Send {
    std::future::pending()
}
