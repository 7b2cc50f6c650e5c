//! Every pair of calls, of a tenant with a limit and of one without.
//!
//! A tenant with a limit goes the careful way into line, one without the quick way: other locks,
//! fewer statements, the same rules.

use stepwell_faults::interleave::Side;

use crate::scene::{Call, Scene};
use crate::stage::Stage;

/// Five tasks of the run are claimed and one is in line, so two of the four runs behind it are
/// held back.
const LIMIT: u32 = 8;

/// What timers wake waits behind the limit, where no claim looks; and a heartbeat reads claims
/// only.
const NEVER_MEET: &[(Call, Call)] = &[(Call::Claim, Call::Fire), (Call::Heartbeat, Call::Fire)];

async fn meet(tasks_max: Option<u32>, one: Call, other: Call) {
    let stage = Stage::open().await;
    // Two commits into one join need both of its parents open.
    let is_join_open = (one, other) == (Call::FanIn, Call::FanIn);
    let scene = Scene::set(&stage.world, tasks_max, is_join_open).await;
    let acts = [scene.act(one, Side::One), scene.act(other, Side::Other)];
    let tried = stage.meet(&acts[0], &acts[1]).await;
    assert!(tried.n_statements.iter().all(|n| *n >= 5), "{tried:?}");
    if tasks_max.is_some() {
        assert!(tried.did_meet() || NEVER_MEET.contains(&(one, other)), "{tried:?}");
    }
    stage.close().await;
}

macro_rules! pairs {
    ($($name:ident: $one:ident, $other:ident;)*) => {
        mod with_a_limit {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                meet(Some(LIMIT), Call::$one, Call::$other).await;
            })*
        }
        mod without_a_limit {
            use super::*;
            $(#[tokio::test]
            async fn $name() {
                meet(None, Call::$one, Call::$other).await;
            })*
        }
    };
}

pairs! {
    claim_meets_claim: Claim, Claim;
    claim_meets_commit: Claim, Commit;
    claim_meets_heartbeat: Claim, Heartbeat;
    claim_meets_reap: Claim, Reap;
    claim_meets_cancel: Claim, Cancel;
    claim_meets_fan_in: Claim, FanIn;
    claim_meets_release: Claim, Release;
    claim_meets_fire: Claim, Fire;
    commit_meets_commit: Commit, Commit;
    commit_meets_heartbeat: Commit, Heartbeat;
    commit_meets_reap: Commit, Reap;
    commit_meets_cancel: Commit, Cancel;
    commit_meets_fan_in: Commit, FanIn;
    commit_meets_release: Commit, Release;
    commit_meets_fire: Commit, Fire;
    heartbeat_meets_heartbeat: Heartbeat, Heartbeat;
    heartbeat_meets_reap: Heartbeat, Reap;
    heartbeat_meets_cancel: Heartbeat, Cancel;
    heartbeat_meets_fan_in: Heartbeat, FanIn;
    heartbeat_meets_release: Heartbeat, Release;
    heartbeat_meets_fire: Heartbeat, Fire;
    reap_meets_reap: ReapSilently, ReapSilently;
    reap_meets_cancel: Reap, Cancel;
    reap_meets_fan_in: Reap, FanIn;
    reap_meets_release: Reap, Release;
    reap_meets_fire: Reap, Fire;
    cancel_meets_cancel: Cancel, Cancel;
    cancel_meets_fan_in: Cancel, FanIn;
    cancel_meets_release: Cancel, Release;
    cancel_meets_fire: Cancel, Fire;
    fan_in_meets_fan_in: FanIn, FanIn;
    fan_in_meets_release: FanIn, Release;
    fan_in_meets_fire: FanIn, Fire;
    release_meets_release: Release, Release;
    release_meets_fire: Release, Fire;
    fire_meets_fire: Fire, Fire;
}
