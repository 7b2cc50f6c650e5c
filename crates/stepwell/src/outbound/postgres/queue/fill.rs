//! Admissions that come free go to throttled tasks of the same tenant, oldest first.

use std::collections::BTreeSet;

use stepwell_core::id::{Node, RunKey};
use stepwell_core::queue::surplus;

use super::super::rows::queue::read;
use super::super::rows::{TaskKeys, int, int32, read_all, task, tenant};
use super::super::session::PgResult;
use super::super::sql::{self, Sql};
use super::QueueSet;
use super::limits::LOCK_TENANTS;
use super::positions::Arrivals;

pub(super) const WITHDRAW_READY: Sql = sql::QUEUE.named("withdraw_ready");
const POP_THROTTLED: Sql = sql::QUEUE.named("pop_throttled");
const DELETE_ADMITTED: Sql = sql::QUEUE.named("delete_admitted");
const DELETE_ADMITTED_OF_TENANTS: Sql = sql::QUEUE.named("delete_admitted_of_tenants");
const TENANTS_WITH_THROTTLED: Sql = sql::QUEUE.named("tenants_with_throttled");
const ADMIT_EXISTING: Sql = sql::QUEUE.named("admit_existing");
const YOUNGEST_READY: Sql = sql::QUEUE.named("youngest_ready");

impl QueueSet<'_> {
    /// Admissions of tasks that moved on go to throttled tasks of the same tenants. Says how many
    /// of those are in their queues now.
    pub(super) async fn free_admissions(&self, gone: &[(RunKey, Node)]) -> PgResult<usize> {
        if gone.is_empty() {
            return Ok(0);
        }
        let keys = TaskKeys::of(gone.iter().copied());
        let freed = self.session.all(DELETE_ADMITTED, &keys.params()).await?;
        let tenants: BTreeSet<u32> = freed.iter().map(tenant::read_no).collect::<Result<_, _>>()?;
        let mut n_filled = 0;
        for tenant_no in tenants {
            n_filled += self.fill(tenant_no).await?;
        }
        Ok(n_filled)
    }

    /// Enqueues throttled tasks of a tenant, as far as its limit allows, oldest first.
    async fn fill(&self, tenant_no: u32) -> PgResult<usize> {
        let mut n_filled = 0;
        loop {
            let room = self.room([tenant_no].into_iter()).await?;
            let n = room.left(tenant_no).map_or(i64::from(i32::MAX), int);
            let next = self.session.all(POP_THROTTLED, &[&int32(tenant_no), &n]).await?;
            if next.is_empty() {
                return Ok(n_filled);
            }
            let mut next = read_all(&next, read)?;
            next.sort_by_key(|task| task.number);
            // Some may be parked instead and leave room for more.
            n_filled += self.enqueue(next, Arrivals::UnderWay).await?;
        }
    }

    /// Counts admissions of tenants anew after their settings changed: throttles the youngest ready
    /// tasks where the limit was lowered, and lets throttled ones in where there is room. Ends once
    /// it has moved `tasks_max` tasks or more, and says how many of the tenants are done.
    pub(crate) async fn apply_settings(
        &self,
        tenants: &[i32],
        tasks_max: usize,
    ) -> PgResult<usize> {
        self.session.run(LOCK_TENANTS, &[&tenants]).await?;
        let settings = self.settings(tenants).await?;
        let is_limited = |no: &i32| {
            settings.get(&no.unsigned_abs()).is_some_and(|settings| settings.tasks_max.is_some())
        };
        let (limited, free): (Vec<i32>, Vec<i32>) = tenants.iter().partition(|no| is_limited(no));
        self.session.run(DELETE_ADMITTED_OF_TENANTS, &[&free]).await?;
        self.session.run(ADMIT_EXISTING, &[&limited]).await?;
        let counts = self.count_admitted(&limited).await?;
        let throttled = self.session.all(TENANTS_WITH_THROTTLED, &[&tenants]).await?;
        let throttled: BTreeSet<u32> =
            throttled.iter().map(tenant::read_no).collect::<Result<_, _>>()?;
        let mut n_moved = 0;
        for (ix, tenant_no) in tenants.iter().map(|no| no.unsigned_abs()).enumerate() {
            if n_moved >= tasks_max {
                return Ok(ix);
            }
            let limit = settings.get(&tenant_no).and_then(|settings| settings.tasks_max);
            let taken = counts.get(&tenant_no).copied().unwrap_or(0);
            let surplus = surplus(taken, limit);
            if surplus > 0 {
                n_moved += self.throttle_youngest(tenant_no, surplus).await?;
            }
            if throttled.contains(&tenant_no) {
                n_moved += self.fill(tenant_no).await?;
            }
        }
        Ok(tenants.len())
    }

    /// Takes the youngest ready tasks of a tenant back behind its limit, and says how many.
    async fn throttle_youngest(&self, tenant_no: u32, n: u64) -> PgResult<usize> {
        let youngest = self.session.all(YOUNGEST_READY, &[&int32(tenant_no), &int(n)]).await?;
        let youngest = TaskKeys::of(read_all(&youngest, task::read_key)?);
        let withdrawn = self.session.all(WITHDRAW_READY, &youngest.params()).await?;
        let withdrawn = read_all(&withdrawn, read)?;
        self.return_positions(&withdrawn).await?;
        self.session.all(DELETE_ADMITTED, &youngest.params()).await?;
        self.throttle(&withdrawn).await?;
        Ok(withdrawn.len())
    }
}
