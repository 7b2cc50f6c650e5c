//! Which processes are alive, as the operating system tells.
//!
//! Every open store that has workers holds a lock on a small file beside the database. The system
//! gives the lock up when the process ends, however it ends, so whoever can take it knows that
//! the workers behind it are gone, without waiting for a lease to run out. A frozen process keeps
//! its lock; there the lease decides.

use std::fs::{self, File, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::sync::OnceLock;
use std::sync::atomic::{AtomicU64, Ordering};

use super::beside;

/// Locks taken by this process so far, for names that differ.
static N_LOCKS: AtomicU64 = AtomicU64::new(0);

/// How often a name is tried that another process has, or took away.
const TRIES_MAX: usize = 100;

/// The locks beside one database.
pub(crate) struct ProcessLocks {
    folder: PathBuf,
    own: OnceLock<ProcessLock>,
}

/// A lock that is held as long as this lives.
struct ProcessLock {
    name: String,
    _lock: File,
}

impl ProcessLocks {
    pub(crate) fn beside(database: &Path) -> Self {
        Self { folder: beside(database, "-workers"), own: OnceLock::new() }
    }

    /// The name of this store's own lock, which is taken when it is first asked for.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(crate) fn own(&self) -> io::Result<&str> {
        if self.own.get().is_none() {
            let lock = self.take()?;
            // Only the writing thread asks, so no other thread was quicker.
            let _ = self.own.set(lock);
        }
        Ok(self.own.get().map_or("", |lock| lock.name.as_str()))
    }

    fn take(&self) -> io::Result<ProcessLock> {
        fs::create_dir_all(&self.folder)?;
        for _ in 0..TRIES_MAX {
            let n = N_LOCKS.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{n}", std::process::id());
            let path = self.folder.join(&name);
            let lock = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            // Between the two, a process that opens the store may have found the lock free and
            // removed its file.
            if lock.try_lock().is_ok() && path.exists() {
                return Ok(ProcessLock { name, _lock: lock });
            }
        }
        Err(io::Error::other("no lock can be had beside the database"))
    }

    /// Whether the process that took this lock is gone. A lock whose file is missing tells nothing.
    pub(crate) fn is_free(&self, name: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        let Ok(file) = File::open(self.folder.join(name)) else { return false };
        file.try_lock().is_ok()
    }

    /// Removes free locks, but not those in `needed`: they tell that their workers are gone.
    pub(crate) fn remove_free(&self, needed: &[String]) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_needed = needed.contains(&name);
            if !is_needed && self.is_free(&name) {
                // Another process may be removing it as well.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn two_stores() -> (tempfile::TempDir, ProcessLocks, ProcessLocks) {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("db");
        let (one, other) = (ProcessLocks::beside(&path), ProcessLocks::beside(&path));
        (folder, one, other)
    }

    #[test]
    fn a_lock_is_free_when_its_process_is_gone() {
        let (_folder, one, other) = two_stores();
        let name = one.own().unwrap().to_owned();
        assert!(!other.is_free(&name));
        drop(one);
        assert!(other.is_free(&name));
    }

    #[test]
    fn a_lock_that_is_not_there_tells_nothing() {
        let (_folder, one, _) = two_stores();
        assert!(!one.is_free("nobody"));
    }

    #[test]
    fn only_free_locks_that_no_worker_needs_are_removed() {
        let (_folder, one, other) = two_stores();
        let held = one.own().unwrap().to_owned();
        for left in ["left", "needed"] {
            File::create(other.folder.join(left)).unwrap();
        }
        other.remove_free(&["needed".to_owned()]);
        assert!(!other.folder.join("left").exists());
        assert!(other.folder.join("needed").exists());
        assert!(other.folder.join(held).exists());
    }
}
