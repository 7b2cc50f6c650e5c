//! Which store an embedded engine of the binary uses. The one place to change when another
//! becomes the default.

use std::path::Path;

use stepwell::{Error, SqliteStore};

/// Where the state of an embedded engine lives, in words for the user.
pub(crate) const EMBEDDED: &str = "in a SQLite file";

/// The store of an embedded engine, in a file in this folder.
pub(crate) async fn embedded(folder: &Path) -> Result<SqliteStore, Error> {
    SqliteStore::open(folder.join("stepwell.db")).await
}
