//! When a commit waits for the disk.

use rusqlite::Connection;

/// Whether commits wait until the log is on disk. A commit that does takes all before it along.
pub(crate) struct SyncMode {
    /// Whether any commit waits.
    is_full: bool,
    waits: bool,
}

impl SyncMode {
    /// Of a connection as it was opened.
    pub(crate) fn new(is_full: bool) -> Self {
        Self { is_full, waits: is_full }
    }

    /// Called between transactions; SQLite refuses it within one.
    pub(crate) fn wait_at_commit(
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
            let mut mode = SyncMode::new(is_full);
            let levels = [true, false, true].map(|must_last| {
                mode.wait_at_commit(&connection, must_last).expect("it is set");
                level()
            });
            assert_eq!(levels, expected);
        }
    }
}
