//! The write-ahead log: when it must be on disk, and keeping it in bounds.
//!
//! SQLite moves the log into the file from time to time and begins it anew when nobody reads in
//! it. Readers that follow each other closely can keep it from beginning anew, and then it grows;
//! past a bound we wait for a gap between them.

use std::path::{Path, PathBuf};
use std::time::Duration;

use rusqlite::Connection;

/// From this size on the log is asked to begin anew.
const BYTES_MAX: u64 = 64 * 1024 * 1024;

/// How long to wait for a gap between readers. The writer stands still for it.
const GAP_WAIT: Duration = Duration::from_millis(50);

/// After a reader left no gap, this many commits pass before the next attempt.
const COMMITS_BETWEEN: u32 = 100;

/// The log of one database.
pub(super) struct Log {
    path: PathBuf,
    n_commits_to_wait: u32,
}

impl Log {
    pub(super) fn of(database: &Path) -> Self {
        let mut path = database.as_os_str().to_owned();
        path.push("-wal");
        Self { path: PathBuf::from(path), n_commits_to_wait: 0 }
    }

    /// Called after a commit.
    pub(super) fn keep_in_bounds(&mut self, connection: &Connection, busy_timeout: Duration) {
        if self.n_commits_to_wait > 0 {
            self.n_commits_to_wait -= 1;
            return;
        }
        let bytes = std::fs::metadata(&self.path).map_or(0, |log| log.len());
        if bytes <= BYTES_MAX {
            return;
        }
        self.n_commits_to_wait = COMMITS_BETWEEN;
        // A log that cannot begin anew yet is no error: the next attempt finds a gap.
        let _ = connection.busy_timeout(GAP_WAIT);
        let begun = connection.query_row("pragma wal_checkpoint(truncate)", [], |row| row.get(0));
        let _ = connection.busy_timeout(busy_timeout);
        let is_busy = begun != Ok(0_i64);
        tracing::debug!(bytes, is_busy, "the log of the database is large");
    }
}

/// Whether commits wait until the log is on disk. A commit that does takes all before it along.
pub(super) struct Disk {
    /// Whether any commit waits.
    is_full: bool,
    waits: bool,
}

impl Disk {
    /// Of a connection as it was opened.
    pub(super) fn new(is_full: bool) -> Self {
        Self { is_full, waits: is_full }
    }

    /// Called between transactions; SQLite refuses it within one.
    pub(super) fn wait_at_commit(
        &mut self,
        connection: &Connection,
        must_last: bool,
    ) -> rusqlite::Result<()> {
        let waits = self.is_full && must_last;
        if waits != self.waits {
            connection.pragma_update(None, "synchronous", if waits { "full" } else { "normal" })?;
            self.waits = waits;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn only_commits_that_must_last_wait_for_the_disk() {
        let connection = Connection::open_in_memory().expect("there is memory");
        let level = || -> i64 {
            let read = connection.query_row("pragma synchronous", [], |row| row.get(0));
            read.expect("it is a setting")
        };
        for (is_full, expected) in [(true, [2, 1, 2]), (false, [1, 1, 1])] {
            let before = if is_full { "full" } else { "normal" };
            connection.pragma_update(None, "synchronous", before).expect("it is a setting");
            let mut disk = Disk::new(is_full);
            let levels = [true, false, true].map(|must_last| {
                disk.wait_at_commit(&connection, must_last).expect("it is set");
                level()
            });
            assert_eq!(levels, expected);
        }
    }
}
