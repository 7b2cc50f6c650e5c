//! A private PostgreSQL cluster that keeps its records (`fsync` is on) and can be crashed.
//!
//! `cargo xtask test` has a cluster of its own, which is fast and forgets on a crash; this one is
//! for tests in which the server dies. It refuses to run as root, so root hands it to an
//! unprivileged user.

use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, chown};
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Signal, kill_process};
use stepwell_cluster::{find_programs, is_up};
use tempfile::TempDir;

use crate::real_time::until;
use crate::{Failure, Result};

/// How long a server may take to start; recovery included.
const WAIT_MAX: Duration = Duration::from_mins(1);

/// Unless a test needs another one; without a network it only names the socket.
const PORT: u16 = 5432;

/// How a server is taken down.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Crash {
    /// SIGINT: an ordinary restart; connections are cut, and nothing has to be recovered.
    Restart,
    /// SIGQUIT: no checkpoint, connections are cut.
    Immediate,
    /// SIGKILL of the postmaster: its children are left to notice.
    Kill,
}

/// A running cluster; it ends and is removed when this is dropped.
#[derive(Debug)]
pub struct Cluster {
    folder: TempDir,
    programs: PathBuf,
    user: Option<User>,
    server: Child,
    settings: Vec<String>,
    port: u16,
}

/// What a server shows to those who connect over the network.
#[derive(Clone, Copy, Debug)]
pub struct Identity<'p> {
    /// Its certificate.
    pub certificate: &'p Path,
    /// The key that belongs to it.
    pub key: &'p Path,
}

/// A user without rights of its own.
#[derive(Clone, Copy, Debug)]
struct User {
    uid: u32,
    gid: u32,
}

impl Cluster {
    /// Makes a cluster and starts it.
    ///
    /// # Errors
    /// If there is no PostgreSQL on this machine, or it does not start.
    pub async fn start() -> Result<Self> {
        Self::start_with(None, "").await
    }

    /// Makes a cluster that can be reached on a port of this machine as well: encrypted if the
    /// client asks for it, and only with a password.
    ///
    /// # Errors
    /// As [`start`](Self::start).
    pub async fn start_guarded(identity: Identity<'_>, port: u16) -> Result<Self> {
        let guarded = Some((identity, port));
        Self::start_with(guarded, "host all all 127.0.0.1/32 scram-sha-256\n").await
    }

    async fn start_with(guarded: Option<(Identity<'_>, u16)>, rules: &str) -> Result<Self> {
        let missing = || Failure("no PostgreSQL server is installed (14 or later)".to_owned());
        let programs = find_programs().ok_or_else(missing)?;
        let user = unprivileged_user()?;
        let folder = tempfile::Builder::new().prefix("stepwell-fleet-").tempdir()?;
        if let Some(user) = user {
            chown(folder.path(), Some(user.uid), Some(user.gid))?;
        }
        initialise(&programs, folder.path(), user)?;
        let mut settings = vec!["listen_addresses=".to_owned()];
        let port = guarded.map_or(PORT, |(_, port)| port);
        if let Some((identity, _)) = guarded {
            settings = guard(folder.path(), user, identity)?;
            let rules = format!("local all all trust\n{rules}");
            fs::write(folder.path().join("data").join("pg_hba.conf"), rules)?;
        }
        settings.push(format!("port={port}"));
        let server = serve(&programs, folder.path(), user, &settings)?;
        let mut cluster = Self { folder, programs, user, server, settings, port };
        cluster.wait_until_up().await?;
        Ok(cluster)
    }

    /// How a client connects to it.
    #[must_use]
    pub fn url(&self) -> String {
        let (folder, port) = (self.folder.path().display(), self.port);
        format!("host={folder} port={port} user=stepwell dbname=postgres")
    }

    /// Crashes the server and starts it again; it answers when this returns.
    ///
    /// # Errors
    /// If it does not come back.
    pub async fn restart_after(&mut self, crash: Crash) -> Result<()> {
        let signal = match crash {
            Crash::Restart => Signal::INT,
            Crash::Immediate => Signal::QUIT,
            Crash::Kill => Signal::KILL,
        };
        kill_process(Pid::from_child(&self.server), signal)
            .map_err(|error| Failure::of("crash the server", error))?;
        let server = &mut self.server;
        until("end of the server", WAIT_MAX, || Ok(server.try_wait()?)).await?;
        self.server = serve(&self.programs, self.folder.path(), self.user, &self.settings)?;
        self.wait_until_up().await
    }

    async fn wait_until_up(&mut self) -> Result<()> {
        let (programs, folder) = (self.programs.clone(), self.folder.path().to_owned());
        let (user, server, settings) = (self.user, &mut self.server, &self.settings);
        let data = folder.join("data");
        let up = until("start of the server", WAIT_MAX, || {
            // A postmaster that was killed leaves children behind for a moment. As long as they
            // hold its memory a new one refuses to start, so it is tried again.
            if server.try_wait()?.is_some() {
                *server = serve(&programs, &folder, user, settings)?;
            }
            Ok(is_up(&data, server.id()).then_some(()))
        });
        let up = up.await;
        let log = || fs::read_to_string(self.folder.path().join("log")).unwrap_or_default();
        up.map_err(|error| Failure(format!("{error}\n{}", log())))
    }
}

impl Drop for Cluster {
    fn drop(&mut self) {
        // An immediate shutdown takes the children along; the files are thrown away.
        let _ = kill_process(Pid::from_child(&self.server), Signal::QUIT);
        let _ = self.server.wait();
    }
}

/// Whom root hands the server to; `None` for anybody else.
fn unprivileged_user() -> Result<Option<User>> {
    if fs::metadata("/proc/self")?.uid() != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd")?;
    let find = |name: &str| users.lines().find_map(|line| user(line, name));
    let missing = || Failure("there is no user to run PostgreSQL as".to_owned());
    find("postgres").or_else(|| find("nobody")).map(Some).ok_or_else(missing)
}

/// One line of the list of users, if it is about this one.
fn user(line: &str, name: &str) -> Option<User> {
    let mut fields = line.split(':');
    if fields.next()? != name {
        return None;
    }
    let uid = fields.nth(1)?.parse().ok()?;
    Some(User { uid, gid: fields.next()?.parse().ok()? })
}

fn command(program: PathBuf, user: Option<User>) -> Command {
    let mut command = Command::new(program);
    // The caller's folder may be closed to the other user.
    command.current_dir("/").stdin(Stdio::null()).stdout(Stdio::null());
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    command
}

fn initialise(programs: &Path, folder: &Path, user: Option<User>) -> Result<()> {
    let mut initdb = command(programs.join("initdb"), user);
    initdb.args(["--auth=trust", "--username=stepwell", "--encoding=UTF8", "--locale=C"]);
    let made = initdb.args(["--no-sync", "--pgdata"]).arg(folder.join("data")).status()?;
    if !made.success() {
        return Err(Failure("initdb could not make a cluster".to_owned()));
    }
    Ok(())
}

/// Lays certificate and key where the server may read them, and says how to use them.
fn guard(folder: &Path, user: Option<User>, identity: Identity<'_>) -> Result<Vec<String>> {
    let mut settings = vec![
        "listen_addresses=127.0.0.1".to_owned(),
        "ssl=on".to_owned(),
        "password_encryption=scram-sha-256".to_owned(),
    ];
    let files = [("ssl_cert_file", identity.certificate), ("ssl_key_file", identity.key)];
    for (setting, source) in files {
        let path = folder.join(setting);
        fs::copy(source, &path)?;
        // The server refuses a key that others can read.
        fs::set_permissions(&path, fs::Permissions::from_mode(0o600))?;
        if let Some(user) = user {
            chown(&path, Some(user.uid), Some(user.gid))?;
        }
        settings.push(format!("{setting}={}", path.display()));
    }
    Ok(settings)
}

fn serve(programs: &Path, folder: &Path, user: Option<User>, settings: &[String]) -> Result<Child> {
    let log = fs::File::options().create(true).append(true).open(folder.join("log"))?;
    let mut server = command(programs.join("postgres"), user);
    server.arg("-D").arg(folder.join("data")).arg("-k").arg(folder);
    for setting in ["fsync=on", "max_connections=200"] {
        server.arg("-c").arg(setting);
    }
    for setting in settings {
        server.arg("-c").arg(setting);
    }
    Ok(server.stderr(log).spawn()?)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_user_is_read_from_its_line() {
        let found = user("postgres:x:101:104::/var/lib/postgresql:/bin/bash", "postgres");
        assert_eq!(found.map(|user| (user.uid, user.gid)), Some((101, 104)));
        assert!(user("postgres2:x:1:2::/:/bin/sh", "postgres").is_none());
    }
}
