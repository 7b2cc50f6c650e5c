//! A private PostgreSQL cluster, for one run of the tests or of the benchmarks, and a pooler.
//!
//! Made in a folder of its own, reached by a Unix socket in it, and gone afterwards. The server
//! refuses to run as root, so root hands it to an unprivileged user. Nothing is printed here.

#![forbid(unsafe_code)]

mod pgbouncer;
mod programs;
mod user;

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fmt, fs, io, process, thread};

pub use pgbouncer::{PgBouncer, PooledServer};
pub use programs::{find_pgbouncer, find_programs, install_pgbouncer, install_programs};
use user::{User, command, unprivileged_user};

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
    folder: PathBuf,
    server: Child,
}

impl Cluster {
    /// Starts a cluster with the programs in this folder.
    ///
    /// # Errors
    /// When there is no room for it, nobody to run it as, or when the server does not come up.
    pub fn start(programs: &Path, options: &ClusterOptions) -> Result<Self, ClusterError> {
        let folder = env::temp_dir().join(format!("stepwell-postgres-{}", process::id()));
        fs::create_dir_all(&folder).map_err(|error| failure("make a folder", &error))?;
        let user = unprivileged_user()?;
        if let Some(user) = user {
            chown(&folder, Some(user.uid), Some(user.gid))
                .map_err(|error| failure("hand the folder over", &error))?;
        }
        let data = folder.join("data");
        initialise(programs, &data, user, options)?;
        let server = serve(programs, &data, &folder, user, options)?;
        let cluster = Self { folder, server };
        cluster.wait_until_up(programs)?;
        Ok(cluster)
    }

    /// How a client connects to it.
    #[must_use]
    pub fn url(&self) -> String {
        format!("host={} user=stepwell dbname=postgres", self.folder.display())
    }

    #[expect(clippy::disallowed_methods, reason = "a server that starts has to be waited for")]
    fn wait_until_up(&self, programs: &Path) -> Result<(), ClusterError> {
        for _ in 0..POLLS_MAX {
            let mut ready = Command::new(programs.join("pg_isready"));
            let ready = ready.arg("-q").arg("-h").arg(&self.folder).status();
            if ready.is_ok_and(|status| status.success()) {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        Err(ClusterError(format!("PostgreSQL did not start:\n{log}")))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // Its data is thrown away, so nothing is lost by the hard way.
        let _ = self.server.kill();
        let _ = self.server.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

fn initialise(
    programs: &Path,
    data: &Path,
    user: Option<User>,
    options: &ClusterOptions,
) -> Result<(), ClusterError> {
    let mut initdb = command(programs.join("initdb"), user);
    initdb.args(["--auth=trust", "--username=stepwell", "--encoding=UTF8", "--locale=C"]);
    if !options.is_durable {
        initdb.arg("--no-sync");
    }
    initdb.arg("--pgdata").arg(data).stdout(Stdio::null());
    let made = initdb.status().map_err(|error| failure("start initdb", &error))?;
    if !made.success() {
        return Err(ClusterError("initdb could not make a cluster".into()));
    }
    Ok(())
}

fn serve(
    programs: &Path,
    data: &Path,
    folder: &Path,
    user: Option<User>,
    options: &ClusterOptions,
) -> Result<Child, ClusterError> {
    let log =
        fs::File::create(folder.join("log")).map_err(|error| failure("make a log", &error))?;
    let mut server = command(programs.join("postgres"), user);
    server.arg("-D").arg(data).arg("-k").arg(folder).args(["-c", "listen_addresses="]);
    let durability: &[&str] = if options.is_durable {
        &["fsync=on", "synchronous_commit=on"]
    } else {
        &["fsync=off", "full_page_writes=off"]
    };
    for setting in durability {
        server.arg("-c").arg(setting);
    }
    for setting in &options.settings {
        server.arg("-c").arg(setting);
    }
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(log));
    server.spawn().map_err(|error| failure("start PostgreSQL", &error))
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
