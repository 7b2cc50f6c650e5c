//! How far a benchmark is, for people who watch.

use std::time::Duration;

use indicatif::{ProgressBar, ProgressStyle};

const SPIN_INTERVAL: Duration = Duration::from_millis(100);

/// A bar for people who watch; others see nothing until there are figures.
pub(super) struct Progress(ProgressBar);

impl Progress {
    pub(super) fn new(is_watched: bool) -> Self {
        if !is_watched {
            return Self(ProgressBar::hidden());
        }
        let style = ProgressStyle::with_template("{spinner} {msg:32} {bar:24} {pos} of {len}")
            .expect("the template is well formed")
            .progress_chars("━━─");
        let bar = ProgressBar::new(0).with_style(style);
        bar.enable_steady_tick(SPIN_INTERVAL);
        Self(bar)
    }

    /// Something else begins.
    pub(super) fn begin(&self, what: &str, n: usize) {
        // A bar that was cleared away comes back.
        self.0.reset();
        self.0.set_message(what.to_owned());
        self.0.set_length(n as u64);
    }

    pub(super) fn set(&self, n: usize) {
        self.0.set_position(n as u64);
    }

    /// Steps aside while something is printed.
    pub(super) fn suspend<T>(&self, print: impl FnOnce() -> T) -> T {
        self.0.suspend(print)
    }

    pub(super) fn finish(&self) {
        self.0.finish_and_clear();
    }
}
