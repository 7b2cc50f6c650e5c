//! Which store the binary uses. The one place to change when another becomes the default.

use stepwell::MemoryStore;
use stepwell::ports::Store;

/// Where the state of an embedded engine lives, in words for the user.
pub(crate) const EMBEDDED: &str = "in memory";

/// The store of an embedded engine.
pub(crate) fn embedded() -> impl Store {
    MemoryStore::new()
}
