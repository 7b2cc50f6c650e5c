//! A private PostgreSQL cluster for one run of the tests.
//!
//! Found or installed, made in a folder of its own, reached by a Unix socket in it, and gone
//! afterwards. The server refuses to run as root, so root hands it to an unprivileged user.

use std::os::unix::fs::chown;
use std::os::unix::process::CommandExt;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, Stdio};
use std::time::Duration;
use std::{env, fs, process, thread};

use crate::Failure;

/// Where tests find the server. Set by a developer, it is used as it is.
pub(crate) const URL_VARIABLE: &str = "STEPWELL_TEST_DATABASE_URL";

/// How often to ask whether the server is up, and for how long.
const POLL: Duration = Duration::from_millis(50);
const POLLS_MAX: u32 = 600;

/// A running cluster; it ends and is removed when this is dropped.
pub(crate) struct Cluster {
    folder: PathBuf,
    server: Child,
}

/// A user without rights of its own.
#[derive(Clone, Copy)]
struct User {
    uid: u32,
    gid: u32,
}

impl Cluster {
    /// Starts a cluster, installing the server first if there is none.
    pub(crate) fn start() -> Result<Self, Failure> {
        let programs = programs()?;
        let folder = env::temp_dir().join(format!("stepwell-postgres-{}", process::id()));
        eprintln!("==> starting a private PostgreSQL ({})", programs.display());
        fs::create_dir_all(&folder).map_err(|error| failure("make a folder", &error))?;
        let user = unprivileged_user()?;
        if let Some(user) = user {
            chown(&folder, Some(user.uid), Some(user.gid))
                .map_err(|error| failure("hand the folder over", &error))?;
        }
        let data = folder.join("data");
        initialise(&programs, &data, user)?;
        let server = serve(&programs, &data, &folder, user)?;
        let cluster = Self { folder, server };
        cluster.wait_until_up(&programs)?;
        Ok(cluster)
    }

    /// How a client connects to it.
    pub(crate) fn url(&self) -> String {
        format!("host={} user=stepwell dbname=postgres", self.folder.display())
    }

    #[expect(clippy::disallowed_methods, reason = "a server that starts has to be waited for")]
    fn wait_until_up(&self, programs: &Path) -> Result<(), Failure> {
        for _ in 0..POLLS_MAX {
            let mut ready = Command::new(programs.join("pg_isready"));
            let ready = ready.arg("-q").arg("-h").arg(&self.folder).status();
            if ready.is_ok_and(|status| status.success()) {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        let log = fs::read_to_string(self.folder.join("log")).unwrap_or_default();
        Err(Failure { reason: format!("PostgreSQL did not start:\n{log}") })
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

/// The folder of a server's programs, installed if there is none.
pub(crate) fn programs() -> Result<PathBuf, Failure> {
    find_programs().map_or_else(install_programs, Ok)
}

/// The folder of the newest server there is.
fn find_programs() -> Option<PathBuf> {
    let told = Command::new("pg_config").arg("--bindir").output().ok();
    let told = told.and_then(|output| String::from_utf8(output.stdout).ok());
    let mut folders: Vec<PathBuf> = told.iter().map(|text| PathBuf::from(text.trim())).collect();
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut debian: Vec<PathBuf> = debian.map(|entry| entry.path().join("bin")).collect();
    debian.sort();
    folders.extend(debian.into_iter().rev());
    folders.into_iter().find(|folder| folder.join("initdb").is_file())
}

/// Installs Debian's package, where that can be done.
fn install_programs() -> Result<PathBuf, Failure> {
    eprintln!("==> no PostgreSQL server found, installing Debian's package");
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command.status().is_ok_and(|status| status.success())
    };
    let installed = apt(&["update", "-q"]) && apt(&["install", "-q", "-y", "postgresql"]);
    find_programs().filter(|_| installed).ok_or_else(|| Failure {
        reason: format!(
            "tests need a PostgreSQL server (14 or later): install one, or set {URL_VARIABLE}"
        ),
    })
}

/// Whom root hands the server to; `None` for anybody else.
fn unprivileged_user() -> Result<Option<User>, Failure> {
    let own = fs::metadata("/proc/self").map_err(|error| failure("read the own user", &error))?;
    if std::os::unix::fs::MetadataExt::uid(&own) != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(|error| failure("read users", &error))?;
    let find = |name: &str| users.lines().find_map(|line| user(line, name));
    let missing = || Failure { reason: "there is no user to run PostgreSQL as".into() };
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
    command.current_dir("/");
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    command
}

fn initialise(programs: &Path, data: &Path, user: Option<User>) -> Result<(), Failure> {
    let mut initdb = command(programs.join("initdb"), user);
    initdb.args(["--auth=trust", "--username=stepwell", "--encoding=UTF8", "--locale=C"]);
    initdb.args(["--no-sync", "--pgdata"]).arg(data).stdout(Stdio::null());
    let made = initdb.status().map_err(|error| failure("start initdb", &error))?;
    if !made.success() {
        return Err(Failure { reason: "initdb could not make a cluster".into() });
    }
    Ok(())
}

/// Durability is not what these tests are about: without it a test's database is made quickly.
fn serve(
    programs: &Path,
    data: &Path,
    folder: &Path,
    user: Option<User>,
) -> Result<Child, Failure> {
    let log =
        fs::File::create(folder.join("log")).map_err(|error| failure("make a log", &error))?;
    let mut server = command(programs.join("postgres"), user);
    server.arg("-D").arg(data).arg("-k").arg(folder);
    for setting in [
        "listen_addresses=",
        "fsync=off",
        "full_page_writes=off",
        "max_connections=400",
        "shared_buffers=128MB",
    ] {
        server.arg("-c").arg(setting);
    }
    server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(log));
    server.spawn().map_err(|error| failure("start PostgreSQL", &error))
}

fn failure(what: &str, error: &std::io::Error) -> Failure {
    Failure { reason: format!("{what}: {error}") }
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
