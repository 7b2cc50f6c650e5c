//! Who is alive, as the operating system tells.
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

/// Seats taken by this process so far, for names that differ.
static N_SEATS: AtomicU64 = AtomicU64::new(0);

/// How often a name is tried that somebody else has, or took away.
const TRIES_MAX: usize = 100;

/// The seats beside one database.
pub(super) struct Seats {
    folder: PathBuf,
    own: OnceLock<Seat>,
}

/// A lock that is held as long as this lives.
struct Seat {
    name: String,
    _lock: File,
}

impl Seats {
    /// The seats of a database. Those that nobody holds or needs are cleared away.
    pub(super) fn beside(database: &Path) -> Self {
        let mut folder = database.as_os_str().to_owned();
        folder.push("-workers");
        Self { folder: PathBuf::from(folder), own: OnceLock::new() }
    }

    /// The name of this store's own seat, which is taken when it is first asked for.
    ///
    /// # Errors
    /// When the folder cannot be written.
    pub(super) fn own(&self) -> io::Result<&str> {
        if self.own.get().is_none() {
            let seat = self.take()?;
            // Only the writing thread asks, so nobody was quicker.
            let _ = self.own.set(seat);
        }
        Ok(self.own.get().map_or("", |seat| seat.name.as_str()))
    }

    fn take(&self) -> io::Result<Seat> {
        fs::create_dir_all(&self.folder)?;
        for _ in 0..TRIES_MAX {
            let n = N_SEATS.fetch_add(1, Ordering::Relaxed);
            let name = format!("{}-{n}", std::process::id());
            let path = self.folder.join(&name);
            let lock = match OpenOptions::new().write(true).create_new(true).open(&path) {
                Ok(lock) => lock,
                Err(error) if error.kind() == io::ErrorKind::AlreadyExists => continue,
                Err(error) => return Err(error),
            };
            // Between the two, somebody who clears away may have taken it for an empty seat.
            if lock.try_lock().is_ok() && path.exists() {
                return Ok(Seat { name, _lock: lock });
            }
        }
        Err(io::Error::other("no seat can be had beside the database"))
    }

    /// Whether whoever took this seat is gone. A seat that cannot be found tells nothing.
    pub(super) fn is_empty(&self, name: &str) -> bool {
        if name.is_empty() {
            return false;
        }
        let Ok(file) = File::open(self.folder.join(name)) else { return false };
        file.try_lock().is_ok()
    }

    /// Removes empty seats that no worker in `needed` has.
    pub(super) fn clear(&self, needed: &[String]) {
        let Ok(entries) = fs::read_dir(&self.folder) else { return };
        for entry in entries.flatten() {
            let name = entry.file_name().to_string_lossy().into_owned();
            let is_needed = needed.contains(&name);
            if !is_needed && self.is_empty(&name) {
                // Somebody else may be clearing away as well.
                let _ = fs::remove_file(entry.path());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn seats() -> (tempfile::TempDir, Seats, Seats) {
        let folder = tempfile::TempDir::new().unwrap();
        let path = folder.path().join("db");
        let (one, other) = (Seats::beside(&path), Seats::beside(&path));
        (folder, one, other)
    }

    #[test]
    fn a_seat_is_empty_when_its_holder_is_gone() {
        let (_folder, one, other) = seats();
        let name = one.own().unwrap().to_owned();
        assert!(!other.is_empty(&name));
        drop(one);
        assert!(other.is_empty(&name));
    }

    #[test]
    fn a_seat_that_is_not_there_tells_nothing() {
        let (_folder, one, _) = seats();
        assert!(!one.is_empty("nobody"));
    }

    #[test]
    fn only_empty_seats_that_nobody_needs_are_cleared_away() {
        let (_folder, one, other) = seats();
        let held = one.own().unwrap().to_owned();
        for left in ["left", "needed"] {
            File::create(other.folder.join(left)).unwrap();
        }
        other.clear(&["needed".to_owned()]);
        assert!(!other.folder.join("left").exists());
        assert!(other.folder.join("needed").exists());
        assert!(other.folder.join(held).exists());
    }
}
