use tokio::signal::ctrl_c;

/// Waits until the process is told to end: by SIGTERM, as service managers and orchestrators
/// send it, or by Ctrl-C. Made for [`Engine::stop_when`](crate::Engine::stop_when).
///
/// From then on a second Ctrl-C ends the process at once, as whoever presses it twice expects.
/// Nothing is lost by that: what was running is executed again elsewhere.
pub async fn shutdown_signal() {
    told_to_end().await;
    #[expect(clippy::disallowed_methods, reason = "the second signal comes beside the stop")]
    drop(tokio::spawn(async {
        if ctrl_c().await.is_ok() {
            std::process::exit(INTERRUPTED);
        }
    }));
}

/// What a shell says of a process that Ctrl-C ended.
const INTERRUPTED: i32 = 130;

#[cfg(unix)]
async fn told_to_end() {
    use tokio::signal::unix::{SignalKind, signal};

    let terminated = async {
        match signal(SignalKind::terminate()) {
            Ok(mut terminated) => drop(terminated.recv().await),
            // Without a handler SIGTERM ends the process by itself.
            Err(error) => {
                tracing::warn!(%error, "SIGTERM cannot be waited for");
                std::future::pending::<()>().await;
            }
        }
    };
    tokio::select! {
        () = terminated => {}
        pressed = ctrl_c() => {
            if let Err(error) = pressed {
                tracing::warn!(%error, "Ctrl-C cannot be waited for");
            }
        }
    }
}

#[cfg(not(unix))]
async fn told_to_end() {
    if let Err(error) = ctrl_c().await {
        tracing::warn!(%error, "Ctrl-C cannot be waited for");
        std::future::pending::<()>().await;
    }
}
