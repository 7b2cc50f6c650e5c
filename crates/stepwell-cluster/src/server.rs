//! One server on one data folder: making the folder, starting, waiting, ending.

use std::os::unix::fs::chown;
use std::path::{Path, PathBuf};
use std::process::{Child, Stdio};
use std::sync::atomic::{AtomicU32, Ordering};
use std::{env, fs, io, process, thread};

use crate::user::{User, command, unprivileged_user};
use crate::{ClusterError, ClusterOptions, POLL, POLLS_MAX, failure};

/// A server with a folder of its own, which holds its data, its socket and its log. Dropped, it
/// ends and the folder is removed.
#[derive(Debug)]
pub(crate) struct Server {
    programs: PathBuf,
    folder: PathBuf,
    user: Option<User>,
    settings: Vec<String>,
    process: Option<Child>,
}

impl Server {
    /// An empty folder for a server that is yet to be started.
    pub(crate) fn prepare(programs: &Path, options: &ClusterOptions) -> Result<Self, ClusterError> {
        // Tests of one process may have one each.
        static N_MADE: AtomicU32 = AtomicU32::new(0);
        let n = N_MADE.fetch_add(1, Ordering::Relaxed);
        let folder = env::temp_dir().join(format!("stepwell-postgres-{}-{n}", process::id()));
        fs::create_dir_all(&folder).map_err(|error| failure("make a folder", &error))?;
        let user = unprivileged_user()?;
        if let Some(user) = user {
            chown(&folder, Some(user.uid), Some(user.gid))
                .map_err(|error| failure("hand the folder over", &error))?;
        }
        let durability: &[&str] = if options.is_durable {
            &["fsync=on", "synchronous_commit=on"]
        } else {
            &["fsync=off", "full_page_writes=off"]
        };
        let settings = durability.iter().map(ToString::to_string);
        let settings = settings.chain(options.settings.iter().cloned()).collect();
        Ok(Self { programs: programs.to_owned(), folder, user, settings, process: None })
    }

    /// Fills the folder with an empty database.
    pub(crate) fn initialise(&self, is_durable: bool) -> Result<(), ClusterError> {
        let mut arguments =
            vec!["--auth=trust", "--username=stepwell", "--encoding=UTF8", "--locale=C"];
        if !is_durable {
            arguments.push("--no-sync");
        }
        self.run("initdb", &arguments)
    }

    /// Fills the folder with what is in that of another server, which must not be running.
    pub(crate) fn copy(&self, other: &Self) -> Result<(), ClusterError> {
        let mut copy = command("cp".into(), self.user);
        copy.arg("-a").arg(other.data()).arg(self.data());
        let copied = copy.status().map_err(|error| failure("copy data", &error))?;
        if copied.success() { Ok(()) } else { Err(ClusterError("cp could not copy data".into())) }
    }

    /// Adds lines to one of the files that the server reads its settings from.
    pub(crate) fn configure(&self, file: &str, lines: &str) -> Result<(), ClusterError> {
        let path = self.data().join(file);
        let text = fs::read_to_string(&path).unwrap_or_default() + lines;
        let written = fs::write(&path, text).and_then(|()| match self.user {
            Some(user) => chown(&path, Some(user.uid), Some(user.gid)),
            None => Ok(()),
        });
        written.map_err(|error| failure("write settings", &error))
    }

    /// Starts the server and waits until it answers.
    pub(crate) fn start(&mut self) -> Result<(), ClusterError> {
        let log = fs::File::options().create(true).append(true).open(self.folder.join("log"));
        let log = log.map_err(|error| failure("make a log", &error))?;
        let mut server = command(self.programs.join("postgres"), self.user);
        server.arg("-D").arg(self.data()).arg("-k").arg(&self.folder);
        server.args(["-c", "listen_addresses="]);
        for setting in &self.settings {
            server.arg("-c").arg(setting);
        }
        server.stdin(Stdio::null()).stdout(Stdio::null()).stderr(Stdio::from(log));
        let process = server.spawn().map_err(|error| self.cannot_start("postgres", &error))?;
        let process = self.process.insert(process).id();
        self.wait_until_up(process)
    }

    /// Whether it was started, and not killed since.
    pub(crate) const fn is_started(&self) -> bool {
        self.process.is_some()
    }

    /// SIGKILL: the server is gone when this returns; its children notice and follow.
    pub(crate) fn kill(&mut self) -> Result<(), ClusterError> {
        let Some(mut process) = self.process.take() else { return Ok(()) };
        process.kill().map_err(|error| failure("kill PostgreSQL", &error))?;
        process.wait().map_err(|error| failure("wait for PostgreSQL", &error)).map(drop)
    }

    /// As [`kill`](Self::kill), with its children: it can be started again at once.
    pub(crate) fn stop(&mut self) -> Result<(), ClusterError> {
        self.control(&["stop", "--mode=immediate"])?;
        self.kill()
    }

    /// Has `pg_ctl` do something to the server.
    pub(crate) fn control(&self, arguments: &[&str]) -> Result<(), ClusterError> {
        self.run("pg_ctl", &[arguments, &["--silent"]].concat())
    }

    /// The folder of the socket, by which clients connect.
    pub(crate) fn host(&self) -> String {
        self.folder.display().to_string()
    }

    fn data(&self) -> PathBuf {
        self.folder.join("data")
    }

    /// Runs one of the server's programs on its data.
    fn run(&self, program: &str, arguments: &[&str]) -> Result<(), ClusterError> {
        let mut run = command(self.programs.join(program), self.user);
        run.args(arguments).arg("--pgdata").arg(self.data()).stdout(Stdio::null());
        let ended = run.status().map_err(|error| self.cannot_start(program, &error))?;
        if ended.success() {
            return Ok(());
        }
        Err(ClusterError(format!("{program} ended with {ended}\n{}", self.log())))
    }

    #[expect(clippy::disallowed_methods, reason = "a server that starts has to be waited for")]
    fn wait_until_up(&self, process: u32) -> Result<(), ClusterError> {
        for _ in 0..POLLS_MAX {
            if is_up(&self.data(), process) {
                return Ok(());
            }
            thread::sleep(POLL);
        }
        Err(ClusterError(format!("PostgreSQL did not start:\n{}", self.log())))
    }

    fn cannot_start(&self, program: &str, error: &io::Error) -> ClusterError {
        let path = self.programs.join(program);
        let what = format!("start {}", path.display());
        // Root's own folders are closed to whom it hands the server to.
        let is_closed = error.kind() == io::ErrorKind::PermissionDenied && self.user.is_some();
        let remedy =
            if is_closed { ", which a user without rights must be able to read" } else { "" };
        failure(&(what + remedy), error)
    }

    fn log(&self) -> String {
        fs::read_to_string(self.folder.join("log")).unwrap_or_default()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        // Its data is thrown away, so nothing is lost by the hard way.
        let _ = self.kill();
        let _ = fs::remove_dir_all(&self.folder);
    }
}

/// Whether the server with this process id on this data folder answers, as a primary or as a
/// standby. It says so itself in a file, so that no client has to be there to ask it: not all
/// packages have one.
#[must_use]
pub fn is_up(data: &Path, process: u32) -> bool {
    let text = fs::read_to_string(data.join("postmaster.pid")).unwrap_or_default();
    says_up(&text, process)
}

/// The file's first line is the server's process id, and the eighth how far it is. One that was
/// killed leaves its file behind.
fn says_up(text: &str, process: u32) -> bool {
    let mut lines = text.lines().map(str::trim);
    let is_its_own = lines.next().is_some_and(|id| id == process.to_string());
    is_its_own && lines.nth(6).is_some_and(|state| ["ready", "standby"].contains(&state))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_server_is_up_when_its_own_file_says_so() {
        let file = |state: &str| format!("71\n/data\n1700000000\n5432\n/run\n\n 8 9\n{state}\n");
        assert!(says_up(&file("ready   "), 71));
        assert!(says_up(&file("standby "), 71));
        assert!(!says_up(&file("starting"), 71));
        assert!(!says_up(&file("ready   "), 72), "one before it was killed");
        assert!(!says_up("71\n/data\n", 71), "the file is not whole yet");
        assert!(!says_up("", 71));
    }
}
