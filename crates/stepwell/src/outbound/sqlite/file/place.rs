//! Whether the file and its log still are where they were opened.
//!
//! Somebody may delete or replace them while they are open. The system keeps what a process has
//! open, so everything seems to work, and is lost with the process.

use std::fs::Metadata;
use std::path::{Path, PathBuf};

use super::beside;
use crate::ports::StoreError;

/// The place of a database.
pub(crate) struct Place {
    file: Seen,
    log: Seen,
}

/// A path and what was found there first.
struct Seen {
    path: PathBuf,
    identity: Option<Identity>,
}

impl Place {
    /// The place of a database that was opened just now. Its log comes with the first commit.
    pub(crate) fn of(database: &Path) -> Self {
        let mut file = Seen { path: database.to_owned(), identity: None };
        // One that is gone already is found by the first check.
        let _ = file.check();
        Self { file, log: Seen { path: beside(database, "-wal"), identity: None } }
    }

    /// Called after a commit, before it is acknowledged. Says how many bytes the log has.
    ///
    /// # Errors
    /// When what was committed is in no file that anybody would find again.
    pub(crate) fn check(&mut self) -> Result<u64, StoreError> {
        self.file.check()?;
        Ok(self.log.check()?.len())
    }
}

impl Seen {
    fn check(&mut self) -> Result<Metadata, StoreError> {
        let found = std::fs::metadata(&self.path).ok();
        let moved = || StoreError::Unavailable {
            operation: "commit",
            why: format!(
                "{} was deleted or replaced while it was open, so what is written now would be \
                 lost; put it back, or start the program anew",
                self.path.display()
            ),
        };
        let found = found.ok_or_else(moved)?;
        let identity = identity(&found);
        if *self.identity.get_or_insert(identity) != identity {
            return Err(moved());
        }
        Ok(found)
    }
}

/// What tells a file from another one at the same path.
type Identity = (u64, u64);

#[cfg(unix)]
fn identity(file: &Metadata) -> Identity {
    use std::os::unix::fs::MetadataExt;
    (file.dev(), file.ino())
}

/// Elsewhere a file that is open cannot be deleted or replaced.
#[cfg(not(unix))]
fn identity(_: &Metadata) -> Identity {
    (0, 0)
}
