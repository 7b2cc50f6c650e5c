//! The suite that every store must pass, one file per guarantee.
//!
//! A store gets the whole suite by one line, `stepwell::conformance_suite!(MyFixture)`, which
//! makes one test of every case. A case is a short story told to a [`World`]; it panics where
//! the store breaks a promise of its [port](crate::ports). There are no sleeps and no wall clock:
//! time is what the manual clock says.

mod cases;
pub mod invariants;
mod suite;
pub mod world;

mod cancel;
mod claim;
mod commit;
mod consistency;
mod deadlines;
mod definitions;
mod end;
mod events;
mod fairness;
mod fan_in;
mod fencing;
mod functions;
mod hand_over;
mod hints;
mod kept_signals;
mod leadership;
mod leases;
mod limits;
mod listing;
mod memos;
mod parking;
mod payloads;
mod progress;
mod retry;
mod signal_races;
mod signals;
mod skip;
mod snapshot;
mod start;
mod suspects;
mod suspend;
mod timers;
mod waiting_runs;
mod waits;

use std::fmt;
use std::pin::Pin;
use std::sync::Arc;

use async_trait::async_trait;

use crate::ports::DynStore;
use crate::testing::ManualClock;

pub use invariants::check_invariants;
pub use world::World;

/// Makes stores for the suite.
#[async_trait]
pub trait StoreFixture: Send + Sync {
    /// An empty store of its own that takes its time from this clock.
    async fn open(&self, clock: Arc<ManualClock>) -> DynStore;
}

/// One case of the suite.
#[derive(Clone, Copy)]
pub struct Case {
    /// The guarantee it belongs to.
    pub guarantee: &'static str,
    /// The behaviour it shows.
    pub name: &'static str,
    play: Play,
}

/// Tells the story of a case to a world.
type Play = for<'world> fn(&'world World) -> Pin<Box<dyn Future<Output = ()> + Send + 'world>>;

impl Case {
    /// Plays the case on a fresh store of the fixture.
    ///
    /// # Panics
    /// If the store breaks its promises.
    pub async fn check(&self, fixture: &dyn StoreFixture) {
        let clock = Arc::new(ManualClock::new());
        let store = fixture.open(Arc::clone(&clock)).await;
        let world = World::new(store, clock);
        (self.play)(&world).await;
        world.check().await;
    }
}

impl fmt::Debug for Case {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}::{}", self.guarantee, self.name)
    }
}

macro_rules! table {
    ($($guarantee:ident { $($name:ident,)* })*) => {
        /// Every case of the suite, by guarantee.
        pub const CASES: &[Case] = &[$($(Case {
            guarantee: stringify!($guarantee),
            name: stringify!($name),
            play: |world| Box::pin($guarantee::$name(world)),
        },)*)*];
    };
}
crate::conformance_cases!(table);

/// Plays one case by its names, for the tests that [`conformance_suite!`](crate::conformance_suite)
/// makes.
///
/// # Panics
/// If the store breaks its promises.
pub async fn check(fixture: &dyn StoreFixture, guarantee: &str, name: &str) {
    let is_meant = |case: &&Case| case.guarantee == guarantee && case.name == name;
    let case = CASES.iter().find(is_meant).expect("the suite has the case");
    case.check(fixture).await;
}
