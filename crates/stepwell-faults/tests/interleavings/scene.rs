//! A state in which any two calls meet: in one run, of one tenant, at one worker, in one queue.

use std::collections::BTreeMap;
use std::time::Duration;

use stepwell::core::id::{Epoch, WorkerId};
use stepwell::ports::{ClaimRef, Outcome, ReapRequest};
use stepwell::testing::conformance::World;
use stepwell::testing::conformance::world::{LEASE, Run, TENANT, WORKER, step_of, worker};
use stepwell_faults::interleave::Side;

use crate::acts::{self, Act};

/// Two commits, a join, two tasks to hand back, one in line, a sleep, and a task that waits for
/// its retry.
const FLOW: &str = "x1; y1 < x1; x2; y2 < x2; p; q; j < p, q; z1; z2; v; s ~ 1h; t < s; w * 3/10s";

/// More than there is, so that a claim meets whatever becomes ready.
const MANY: usize = 10;

/// What can be called.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Call {
    Claim,
    Commit,
    Heartbeat,
    Reap,
    /// Reaps without telling how much. Tasks are taken in pieces, so two that reap the same worker
    /// share the count; what became of the tasks is compared as everywhere.
    ReapSilently,
    Cancel,
    /// Completes the last open parent of a join.
    FanIn,
    Release,
    Fire,
}

/// A state with everything in it that calls need.
pub(crate) struct Scene {
    pub(crate) run: Run,
    /// Claims of [`WORKER`], by step.
    pub(crate) claims: BTreeMap<String, ClaimRef>,
    silent: WorkerId,
    lively: WorkerId,
    epoch: Epoch,
    reaping: ReapRequest,
}

impl Scene {
    /// A run of which the silent worker holds tasks, with timers that are due; runs in line, and
    /// behind the limit if there is one; and a lively worker beside the silent one.
    pub(crate) async fn set(world: &World, tasks_max: Option<u32>, is_join_open: bool) -> Self {
        let (flow, single) = (world.define(FLOW).await, world.define("k").await);
        let lively = world.hire("lively").await;
        let run = world.start(&flow).await;
        let batch = world.claim_all().await;
        let mut claims: BTreeMap<String, ClaimRef> =
            batch.iter().map(|task| (step_of(task).to_owned(), task.claim)).collect();
        world.fail(batch.of("w")).await;
        world.release(batch.of("v")).await;
        claims.retain(|step, _| step != "w" && step != "v");
        if !is_join_open {
            world.complete(batch.of("q")).await;
            claims.remove("q");
        }
        world.limit(TENANT, tasks_max).await;
        world.start_many_for(TENANT, &single, 4).await;
        world.start_for("zeta", &single).await;
        let epoch = world.lead().await;
        world.pass(Duration::from_hours(1).max(LEASE));
        world.beat(&lively, &[]).await;
        world.pass(Duration::from_millis(1));
        let reaping = world.reap_request().await;
        Self { run, claims, silent: worker(WORKER), lively, epoch, reaping }
    }

    /// What one side calls; where both call the same, they do it to different tasks if they can.
    pub(crate) fn act(&self, call: Call, side: Side) -> Act {
        let by_side = |one: &str, other: &str| match side {
            Side::One => self.claims[one],
            Side::Other => self.claims[other],
        };
        match (call, side) {
            (Call::Claim, Side::One) => acts::claim(&self.silent, MANY, 1),
            (Call::Claim, Side::Other) => acts::claim(&self.lively, MANY, 2),
            (Call::Commit, _) => acts::complete(by_side("x1", "x2")),
            (Call::Heartbeat, _) => {
                let claims: Vec<ClaimRef> = self.claims.values().copied().collect();
                acts::heartbeat(&self.silent, &claims)
            }
            (Call::Reap, _) => acts::reap(self.epoch, self.reaping.clone()),
            (Call::ReapSilently, _) => acts::reap_silently(self.epoch, self.reaping.clone()),
            (Call::Cancel, _) => acts::cancel(self.run.key),
            (Call::FanIn, _) if self.claims.contains_key("q") => acts::complete(by_side("p", "q")),
            (Call::FanIn, _) => acts::complete(self.claims["p"]),
            (Call::Release, _) => acts::commit(by_side("z1", "z2"), Outcome::Released),
            (Call::Fire, _) => acts::fire(self.epoch),
        }
    }
}
