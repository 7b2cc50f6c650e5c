//! Keeping the write-ahead log in bounds.
//!
//! SQLite moves the log into the file from time to time and begins it anew when nobody reads in
//! it. Readers that follow each other closely can keep it from beginning anew, and then it grows;
//! past a bound we wait for a gap between them.

use std::time::Duration;

use rusqlite::Connection;

/// From this size on the log is asked to begin anew.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How long to wait for a gap between readers. The writer stands still for it.
const GAP_WAIT: Duration = Duration::from_millis(50);

/// After a reader left no gap, this many commits pass before the next attempt.
const COMMITS_BETWEEN: u32 = 100;

/// The write-ahead log of one database.
#[derive(Default)]
pub(crate) struct WalFile {
    /// How large it was after the last commit.
    pub(crate) bytes: u64,
    n_commits_to_wait: u32,
}

impl WalFile {
    /// Called after a commit.
    pub(crate) fn keep_in_bounds(&mut self, connection: &Connection, busy_timeout: Duration) {
        if self.n_commits_to_wait > 0 {
            self.n_commits_to_wait -= 1;
            return;
        }
        let bytes = self.bytes;
        if bytes <= BYTES_MAX {
            return;
        }
        self.n_commits_to_wait = COMMITS_BETWEEN;
        // A log that cannot begin anew yet is no error: the next attempt finds a gap.
        let _ = connection.busy_timeout(GAP_WAIT);
        let begun =
            connection.query_row("pragma wal_checkpoint(truncate)", [], |row| row.get("busy"));
        let _ = connection.busy_timeout(busy_timeout);
        let is_busy = begun != Ok(0_i64);
        tracing::debug!(bytes, is_busy, "the log of the database is large");
    }
}
