//! Who has been silent, as somebody sees it who never looks away.

use std::collections::BTreeMap;
use std::time::Duration;

use stepwell_core::id::WorkerId;
use stepwell_core::lease::{LastBeat, Life, is_dead};

/// When each worker was last heard of. Tests let time pass in one go, so nobody has to look in
/// between; whoever leads in earnest goes by `stepwell_core::silence`.
#[derive(Debug, Default)]
pub struct Beats(BTreeMap<WorkerId, (u64, Duration)>);

impl Beats {
    /// Takes note of who has beaten, and gives the last beats of the dead.
    pub fn look(&mut self, elapsed: Duration, lives: &[Life]) -> Vec<LastBeat> {
        let mut dead = Vec::new();
        for life in lives {
            let LastBeat { worker, n_beats } = &life.last_beat;
            let heard = self.0.entry(worker.clone()).or_insert((*n_beats, elapsed));
            if heard.0 != *n_beats {
                *heard = (*n_beats, elapsed);
            }
            if is_dead(life, elapsed.saturating_sub(heard.1)) {
                dead.push(life.last_beat.clone());
            }
        }
        dead
    }
}
