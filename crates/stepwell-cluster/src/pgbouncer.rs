//! A private `PgBouncer` in transaction mode before a PostgreSQL server.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, process, thread};

use crate::user::{command, unprivileged_user};
use crate::{ClusterError, POLL, POLLS_MAX, failure};

/// The number that the pooler's socket carries.
const PORT: u16 = 6432;

/// A server that a pooler stands before, and how.
#[derive(Clone, Debug)]
pub struct PooledServer {
    /// The server's host, or the folder of its socket.
    pub host: String,
    /// Its port.
    pub port: u16,
    /// Whom all clients are at the server.
    pub user: String,
    /// How many connections to the server all clients share.
    pub connections_max: usize,
}

/// A running pooler; it ends and is removed when this is dropped.
#[derive(Debug)]
pub struct PgBouncer {
    folder: PathBuf,
    process: Child,
    user: String,
}

impl PgBouncer {
    /// Starts the program before a server.
    ///
    /// # Errors
    /// When there is no room for it, nobody to run it as, or when it does not come up.
    pub fn start(program: &Path, server: &PooledServer) -> Result<Self, ClusterError> {
        // Tests of one process may have one each.
        static N_STARTED: AtomicU32 = AtomicU32::new(0);
        let n = N_STARTED.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("stepwell-pgbouncer-{}-{n}", process::id()));
        fs::create_dir_all(&folder).map_err(|error| failure("make a folder", &error))?;
        let user = unprivileged_user()?;
        if let Some(user) = user {
            chown(&folder, Some(user.uid), Some(user.gid))
                .map_err(|error| failure("hand the folder over", &error))?;
        }
        let settings = folder.join("pgbouncer.ini");
        fs::write(&settings, in_words(server, &folder))
            .map_err(|error| failure("write settings", &error))?;
        let mut pgbouncer = command(program.to_owned(), user);
        pgbouncer.arg("-q").arg(&settings);
        pgbouncer.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::null());
        let process = pgbouncer.spawn().map_err(|error| failure("start PgBouncer", &error))?;
        let pooler = Self { folder, process, user: server.user.clone() };
        pooler.wait_until_up()?;
        Ok(pooler)
    }

    /// How a client connects to a database of the server.
    #[must_use]
    pub fn url(&self, database: &str) -> String {
        let (host, user) = (self.folder.display(), &self.user);
        format!("host={host} port={PORT} user={user} dbname={database}")
    }

    #[expect(clippy::disallowed_methods, reason = "a program that starts has to be waited for")]
    fn wait_until_up(&self) -> Result<(), ClusterError> {
        let socket = self.folder.join(format!(".s.PGSQL.{PORT}"));
        for _ in 0..POLLS_MAX {
            if socket.exists() {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        Err(ClusterError(format!("PgBouncer did not start:\n{log}")))
    }
}

impl Drop for PgBouncer {
    fn drop(&mut self) {
        let _ = self.process.kill();
        let _ = self.process.wait();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// The program's settings.
fn in_words(server: &PooledServer, folder: &Path) -> String {
    let PooledServer { host, port, user, connections_max } = server;
    let folder = folder.display();
    format!(
        "[databases]\n* = host={host} port={port} user={user}\n\
         [pgbouncer]\nlisten_addr =\nlisten_port = {PORT}\nunix_socket_dir = {folder}\n\
         logfile = {folder}/log\nauth_type = any\npool_mode = transaction\n\
         default_pool_size = {connections_max}\nmax_client_conn = 400\n"
    )
}
