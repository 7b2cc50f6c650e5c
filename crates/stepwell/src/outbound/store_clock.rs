//! The clock of a store without one of its own, shared by its threads.

use std::sync::{Arc, Mutex};

use stepwell_core::store_time::{StoreTime, WrittenTime};
use stepwell_core::time::Timestamp;

use crate::ports::Clock;

/// Tells the store's time, which never goes back.
pub(crate) struct StoreClock {
    clock: Arc<dyn Clock>,
    state: Mutex<State>,
}

struct State {
    time: StoreTime,
    /// Somebody was told that the machine's clock is behind.
    is_told: bool,
}

impl StoreClock {
    /// Goes on from what was written down last.
    pub(crate) fn resume(clock: Arc<dyn Clock>, written: WrittenTime) -> Self {
        let time = StoreTime::resume(written, clock.read());
        let mut state = State { time, is_told: false };
        state.tell();
        Self { clock, state: Mutex::new(state) }
    }

    /// The time now, and not behind what others have written meanwhile.
    pub(crate) fn now(&self, written: Timestamp) -> WrittenTime {
        let mut state = self.state.lock().expect("no holder of the lock panics");
        // Read under the lock, so that readings come one after the other.
        state.time = state.time.at(self.clock.read(), written);
        state.tell();
        state.time.written()
    }
}

impl State {
    /// Tells once that the machine's clock is behind: it is wrong now, or was ahead before.
    fn tell(&mut self) {
        let is_behind = self.time.is_clock_behind();
        if is_behind && !self.is_told {
            let WrittenTime { now, clock_at } = self.time.written();
            tracing::warn!(
                store_time = %now.utc(),
                clock = %clock_at.utc(),
                behind = ?now.since(clock_at),
                "this machine's clock is behind the store's time, or was ahead of it before; the \
                 store's time goes on at the clock's pace"
            );
        }
        self.is_told = is_behind;
    }
}
