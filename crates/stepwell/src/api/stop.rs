//! The stop of an engine. There is one, on the engine's own runtime: every call of `stop` waits for
//! its end, and a call that is dropped does not undo it.

use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::Duration;

use tokio::sync::watch;
use tokio_util::task::TaskTracker;

use crate::engine::Parts;
use crate::worker::{StopReport, Worker};

/// How long giving up leadership and saying goodbye to the store may take.
const GOODBYE_TTL: Duration = Duration::from_secs(2);

/// The stop of an engine, which all its handles share.
pub(super) struct Shutdown {
    parts: Arc<Parts>,
    worker: Option<Arc<Worker>>,
    /// The leader's loop, which resigns when the engine closes.
    leading: TaskTracker,
    has_begun: AtomicBool,
    /// When draining ends, by the engine's clock: the earliest moment that anybody asked for.
    drain_until: watch::Sender<Duration>,
    /// How it went, once it is over.
    report: watch::Sender<Option<StopReport>>,
}

impl Shutdown {
    /// The most time that a stop takes beyond its grace period.
    pub(super) const OVERTIME_MAX: Duration = Worker::STOP_OVERTIME_MAX.saturating_add(GOODBYE_TTL);

    pub(super) fn new(
        parts: Arc<Parts>,
        worker: Option<Arc<Worker>>,
        leading: TaskTracker,
    ) -> Arc<Self> {
        Arc::new(Self {
            parts,
            worker,
            leading,
            has_begun: AtomicBool::new(false),
            drain_until: watch::channel(Duration::MAX).0,
            report: watch::channel(None).0,
        })
    }

    /// Begins the stop, or joins the one that has begun, and waits for its end.
    pub(super) async fn stop(self: &Arc<Self>, grace: Duration) -> StopReport {
        let until = self.parts.clock.elapsed().saturating_add(grace);
        self.drain_until.send_if_modified(|moment| {
            let is_earlier = until < *moment;
            *moment = until.min(*moment);
            is_earlier
        });
        if !self.has_begun.swap(true, Ordering::AcqRel) {
            // Counted before anything else happens: what ends from now on was drained.
            let n_ended_before = self.worker.as_ref().map_or(0, |worker| worker.begin_to_stop());
            self.spawn_to_the_end(|shutdown| shutdown.drain(n_ended_before));
        }
        let mut report = self.report.subscribe();
        let over = async move { drop(report.wait_for(Option::is_some).await) };
        self.parts.spawner.engine_wait(Box::pin(over)).await;
        self.report.borrow().unwrap_or_default()
    }

    /// Completes when the engine will not wait for anything any more: its stop is over, or it has
    /// closed.
    pub(super) async fn over(&self) {
        let mut report = self.report.subscribe();
        tokio::select! {
            biased;
            () = self.parts.closing.cancelled() => {}
            _ = report.wait_for(Option::is_some) => {}
        }
    }

    /// The last handle is gone: nothing is claimed any more, and the engine closes when no step is
    /// left. Until then steps keep their leases, or they would be executed twice at once.
    pub(super) fn abandon(self: &Arc<Self>) {
        if let Some(worker) = &self.worker {
            worker.begin_to_stop();
        }
        if !self.has_begun.swap(true, Ordering::AcqRel) {
            self.spawn_to_the_end(Self::close_when_empty);
        }
    }

    fn spawn_to_the_end<F>(self: &Arc<Self>, ending: impl FnOnce(Arc<Self>) -> F)
    where
        F: Future<Output = ()> + Send + 'static,
    {
        let unfinished = Unfinished(Arc::clone(self));
        let ending = ending(Arc::clone(self));
        self.parts.spawner.spawn(Box::pin(async move {
            ending.await;
            drop(unfinished);
        }));
    }

    async fn drain(self: Arc<Self>, n_ended_before: usize) {
        let report = match &self.worker {
            Some(worker) => worker.stop(n_ended_before, self.drain_until.subscribe()).await,
            None => StopReport::default(),
        };
        let n_left = report.n_still_running + report.n_uncommitted;
        if n_left == 0 {
            self.close().await;
        }
        self.report.send_replace(Some(report));
        if n_left > 0 {
            self.close_when_empty().await;
        }
    }

    /// Closes when the last step has ended and is committed. What still runs keeps its lease.
    async fn close_when_empty(self: Arc<Self>) {
        if let Some(worker) = &self.worker {
            worker.emptied().await;
        }
        self.close().await;
    }

    async fn close(&self) {
        self.parts.closing.cancel();
        self.leading.close();
        let goodbye = async {
            self.leading.wait().await;
            if self.worker.is_some()
                && let Err(error) = self.parts.store.deregister_worker(&self.parts.worker).await
            {
                tracing::warn!(%error, "deregister worker");
            }
        };
        tokio::select! {
            biased;
            () = goodbye => {}
            () = self.parts.clock.sleep(GOODBYE_TTL) => {
                tracing::warn!("the store did not answer a worker's goodbye");
            }
        }
    }
}

/// A stop that is dropped half-way, as when its runtime ends, is over all the same.
struct Unfinished(Arc<Shutdown>);

impl Drop for Unfinished {
    fn drop(&mut self) {
        let Self(shutdown) = self;
        shutdown.parts.closing.cancel();
        let n_still_running = shutdown.worker.as_ref().map_or(0, |worker| worker.n_held());
        shutdown.report.send_if_modified(|report| {
            let is_missing = report.is_none();
            report.get_or_insert(StopReport { n_still_running, ..StopReport::default() });
            is_missing
        });
    }
}
