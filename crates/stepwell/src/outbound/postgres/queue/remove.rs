//! Tasks that moved on leave where they waited, and what they were counted by.

use stepwell_core::id::{Node, RunKey};

use super::super::rows::queue::read;
use super::super::rows::{TaskKeys, read_all};
use super::super::session::PgResult;
use super::super::sql::{self, Sql};
use super::QueueSet;
use super::fill::WITHDRAW_READY;

const DELETE_PARKED: Sql = sql::QUEUE.named("delete_parked");
const DELETE_THROTTLED: Sql = sql::QUEUE.named("delete_throttled");

/// Tasks that moved on, and whose they are.
#[derive(Default)]
pub(crate) struct MovedOn {
    pub(crate) tenants: Vec<u32>,
    /// Those that were queued.
    pub(crate) dequeued: Vec<(RunKey, Node)>,
    /// Those whose claims ended.
    pub(crate) ended: Vec<(RunKey, Node)>,
}

impl QueueSet<'_> {
    /// Removes queue rows and admissions of tasks that moved on. Says how many others are in their
    /// queues for that.
    pub(crate) async fn remove_places(&self, moved_on: MovedOn) -> PgResult<usize> {
        let MovedOn { tenants, dequeued, ended: mut freed } = moved_on;
        if tenants.is_empty() {
            return Ok(0);
        }
        // Tenants before anything that waits or counts in their name: whoever holds a tenant
        // moves on its throttled tasks and counts its admissions, and must not wait for us
        // meanwhile. Held also without a limit, or one that is set now would count claims that end
        // here.
        self.room(tenants.into_iter()).await?;
        self.withdraw(&dequeued).await?;
        freed.extend(dequeued);
        self.free_admissions(&freed).await
    }

    /// Takes cancelled tasks off, wherever they wait, and gives their positions back.
    async fn withdraw(&self, gone: &[(RunKey, Node)]) -> PgResult<()> {
        if gone.is_empty() {
            return Ok(());
        }
        let gone = TaskKeys::of(gone.iter().copied());
        // In the order in which others move tasks on: what one statement had to wait for, the
        // next one sees where it went.
        self.session.run(DELETE_PARKED, &gone.params()).await?;
        self.session.run(DELETE_THROTTLED, &gone.params()).await?;
        let withdrawn = self.session.all(WITHDRAW_READY, &gone.params()).await?;
        let withdrawn = read_all(&withdrawn, read)?;
        // Tenants are locked before positions, here as everywhere.
        self.room(withdrawn.iter().map(|task| task.tenant_no)).await?;
        self.return_positions(&withdrawn).await
    }
}
