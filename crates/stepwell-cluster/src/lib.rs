//! A private PostgreSQL cluster, for one run of the tests or of the benchmarks, one with a standby,
//! and a pooler.
//!
//! Made in a folder of its own, reached by a Unix socket in it, and gone afterwards. The server
//! refuses to run as root, so root hands it to an unprivileged user. Nothing is printed here.

#![forbid(unsafe_code)]

mod pair;
mod pgbouncer;
mod programs;
mod server;
mod user;

use std::path::Path;
use std::time::Duration;
use std::{fmt, io};

pub use pair::Pair;
pub use pgbouncer::{PgBouncer, PooledServer};
pub use programs::{
    PROGRAMS_VARIABLE, find_pgbouncer, find_programs, install_pgbouncer, install_programs,
};
use server::Server;
pub use server::is_up;

/// How often to ask whether the server is up, and for how long.
const POLL: Duration = Duration::from_millis(50);
const POLLS_MAX: u32 = 600;

/// What a cluster is like.
#[derive(Clone, Debug)]
pub struct ClusterOptions {
    /// Whether a commit is on disk when it is answered. Tests do without and are quicker.
    pub is_durable: bool,
    /// Settings other than the server's own, each as `name=value`.
    pub settings: Vec<String>,
}

/// Why there is no cluster, as one sentence.
#[derive(Debug)]
pub struct ClusterError(String);

/// A running cluster; it ends and is removed when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    server: Server,
}

impl Cluster {
    /// Starts a cluster with the programs in this folder.
    ///
    /// # Errors
    /// When there is no room for it, nobody to run it as, or when the server does not come up.
    pub fn start(programs: &Path, options: &ClusterOptions) -> Result<Self, ClusterError> {
        let mut server = Server::prepare(programs, options)?;
        server.initialise(options.is_durable)?;
        server.start()?;
        Ok(Self { server })
    }

    /// How a client connects to it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("host={} user=stepwell dbname=postgres", self.server.host())
    }
}

fn failure(what: &str, error: &io::Error) -> ClusterError {
    ClusterError(format!("{what}: {error}"))
}

impl fmt::Display for ClusterError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for ClusterError {}
