//! The tests' own PostgreSQL: found or installed, started for one run, and gone afterwards. The
//! pooler that stands before it in some tests is started by those.

use std::path::{Path, PathBuf};

use stepwell_cluster::{
    Cluster, ClusterOptions, find_pgbouncer, find_programs, install_pgbouncer, install_programs,
};

use crate::Failure;

/// Where tests find the server. Set by a developer, it is used as it is.
pub(crate) const URL_VARIABLE: &str = "STEPWELL_TEST_DATABASE_URL";

/// The folder of a server's programs, installed if there is none.
pub(crate) fn programs() -> Result<PathBuf, Failure> {
    find_programs().map_or_else(install, Ok)
}

/// Starts a cluster, installing the server first if there is none.
pub(crate) fn start() -> Result<Cluster, Failure> {
    start_with(&programs()?)
}

/// Starts a cluster with the programs in this folder.
pub(crate) fn start_with(programs: &Path) -> Result<Cluster, Failure> {
    eprintln!("==> starting a private PostgreSQL ({})", programs.display());
    // Durability is not what these tests are about: without it a test's database is made quickly.
    let settings = vec!["max_connections=400".to_owned(), "shared_buffers=128MB".to_owned()];
    let options = ClusterOptions { is_durable: false, settings };
    Cluster::start(programs, &options).map_err(|error| Failure { reason: error.to_string() })
}

/// Tells tests that there is no pooler and that none could be installed, so that those which need
/// one are left out. Without it they fail.
pub(crate) const NO_POOLER_VARIABLE: &str = "STEPWELL_TEST_WITHOUT_POOLER";

/// Makes sure that there is a pooler. Says whether there is.
pub(crate) fn ensure_pooler() -> bool {
    if find_pgbouncer().is_some() {
        return true;
    }
    eprintln!("==> no PgBouncer found, installing Debian's package");
    let is_there = install_pgbouncer().is_some();
    if !is_there {
        eprintln!("==> SKIPPED: PgBouncer cannot be installed, tests behind it are left out");
    }
    is_there
}

fn install() -> Result<PathBuf, Failure> {
    eprintln!("==> no PostgreSQL server found, installing Debian's package");
    install_programs().ok_or_else(|| Failure {
        reason: format!(
            "tests need a PostgreSQL server (14 or later): install one, or set {URL_VARIABLE}"
        ),
    })
}
