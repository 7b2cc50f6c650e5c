//! Which store the binary uses. The one place to change when another becomes the default.

use std::path::{Path, PathBuf};

use stepwell::{Error, SqliteStore};

/// Where a store is, as the user names it.
#[derive(Debug, PartialEq, Eq)]
pub(crate) enum StoreAddress<'a> {
    Postgres(&'a str),
    Sqlite(PathBuf),
}

impl<'a> StoreAddress<'a> {
    /// URLs, and lists of `key=value`, are PostgreSQL's; anything else is a path.
    pub(crate) fn parse(text: &'a str) -> Self {
        let is_url = text.starts_with("postgres://") || text.starts_with("postgresql://");
        let is_list = text.split(' ').any(|pair| pair.starts_with("host="));
        if is_url || is_list {
            return Self::Postgres(text);
        }
        Self::Sqlite(PathBuf::from(text.strip_prefix("sqlite:").unwrap_or(text)))
    }
}

/// Where the state of an embedded engine lives, in words for the user.
pub(crate) const EMBEDDED: &str = "in a SQLite file";

/// The store of an embedded engine, in a file in this folder.
pub(crate) async fn embedded(folder: &Path) -> Result<SqliteStore, Error> {
    SqliteStore::open(folder.join("stepwell.db")).await
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn servers_are_told_from_files() {
        for url in ["postgres://u@h/d", "postgresql:///d", "dbname=d host=/run"] {
            assert_eq!(StoreAddress::parse(url), StoreAddress::Postgres(url));
        }
        for (text, path) in [("shop.db", "shop.db"), ("sqlite:/var/shop.db", "/var/shop.db")] {
            assert_eq!(StoreAddress::parse(text), StoreAddress::Sqlite(PathBuf::from(path)));
        }
    }
}
