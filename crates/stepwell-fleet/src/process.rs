//! One worker process: starting it, the signals it gets, and how it ended.
//!
//! A process writes what it has to say into files of the fleet's folder, so that nothing is lost
//! when it is killed and nobody has to read a pipe. Its standard input is a pipe from us: we tell
//! it there how its clock jumps, and when we are gone, it ends.

use std::fs::{self, File};
use std::io::Write;
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use rustix::process::{Pid, Resource, Rlimit, Signal, getrlimit, kill_process, prlimit};
use serde::{Deserialize, Serialize};

use crate::address::Address;
use crate::jumping_clock::Jump;
use crate::real_time::until;
use crate::{Failure, Result};

/// How long to wait for a process to be ready, or to end.
const WAIT_MAX: Duration = Duration::from_secs(90);

/// How worker processes are started.
#[derive(Clone, Debug)]
pub struct Setup {
    /// The program `fleet-worker`.
    pub program: PathBuf,
    /// The store.
    pub address: Address,
    /// Where processes write what they did.
    pub folder: PathBuf,
    /// Tasks executed at once.
    pub slots: usize,
    /// How long a worker may be silent.
    pub lease: Duration,
    /// How long leadership lasts without being renewed.
    pub leader_ttl: Duration,
    /// How long a worker that is asked to stop waits for running steps.
    pub grace: Duration,
    /// Deaths after which a task is failed.
    pub crash_limit: u32,
    /// Whether the process also starts runs, one after the other.
    pub starts_runs: bool,
    /// Whether the store may be held by a frozen worker when the process opens it.
    pub waits_for_store: bool,
    /// Whether the process goes by a clock that can be made to jump.
    pub has_jumping_clock: bool,
    /// The number of the first worker's name: two fleets on one store must not share names.
    pub names_from: usize,
}

impl Setup {
    /// The settings most tests use: a short lease, so that dead workers are found soon, and no
    /// task is ever failed because workers died.
    #[must_use]
    pub fn new(program: impl Into<PathBuf>, address: Address, folder: &Path) -> Self {
        Self {
            program: program.into(),
            address,
            folder: folder.to_owned(),
            slots: 8,
            lease: Duration::from_millis(2_500),
            leader_ttl: Duration::from_millis(1_500),
            grace: Duration::from_secs(20),
            crash_limit: 1_000,
            starts_runs: false,
            waits_for_store: false,
            has_jumping_clock: false,
            names_from: 1,
        }
    }

    fn command(&self, name: &str) -> Result<Command> {
        let file = |kind: &str| File::create(self.folder.join(format!("{kind}-{name}")));
        let millis = |span: Duration| span.as_millis().to_string();
        let mut command = Command::new(&self.program);
        command.args(self.address.arguments()).arg("--folder").arg(&self.folder);
        command.args(["--name", name, "--slots", &self.slots.to_string()]);
        command.args(["--lease-ms", &millis(self.lease)]);
        command.args(["--leader-ttl-ms", &millis(self.leader_ttl)]);
        command.args(["--grace-ms", &millis(self.grace)]);
        command.args(["--crash-limit", &self.crash_limit.to_string()]);
        if self.starts_runs {
            command.arg("--starts-runs");
        }
        if self.waits_for_store {
            command.arg("--waits-for-store");
        }
        if self.has_jumping_clock {
            command.arg("--jumping-clock");
        }
        command.stdin(Stdio::piped()).stdout(file("out")?).stderr(file("err")?);
        Ok(command)
    }
}

/// What a worker process tells by printing it.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum WorkerMessage {
    /// Its engine has started.
    Ready,
    /// It stopped when asked to: its report.
    Stopped {
        /// Tasks that ended within the grace period.
        n_drained: usize,
        /// Tasks that went back to the queue.
        n_handed_back: usize,
        /// Blocking steps that did not return.
        n_still_running: usize,
    },
}

/// A worker process. It is killed when this is dropped.
#[derive(Debug)]
pub struct Worker {
    name: String,
    out: PathBuf,
    err: PathBuf,
    child: Child,
}

impl Worker {
    /// Starts a process under a name that no other had before.
    ///
    /// # Errors
    /// If the program cannot be started.
    pub fn spawn(setup: &Setup, name: &str) -> Result<Self> {
        let start = |error| Failure::of("start a worker", error);
        let child = setup.command(name)?.spawn().map_err(start)?;
        let path = |kind: &str| setup.folder.join(format!("{kind}-{name}"));
        Ok(Self { name: name.to_owned(), out: path("out"), err: path("err"), child })
    }

    /// Its name, which is the worker's id.
    #[must_use]
    pub fn name(&self) -> &str {
        &self.name
    }

    /// Waits until its engine has started.
    ///
    /// # Errors
    /// If the process ends before.
    pub async fn ready(&mut self) -> Result<()> {
        let what = format!("start of {}", self.name);
        until(&what, WAIT_MAX, || Ok(self.is_ready()?.then_some(()))).await
    }

    /// Whether its engine has started.
    ///
    /// # Errors
    /// If the process ended before.
    pub fn is_ready(&mut self) -> Result<bool> {
        if self.messages()?.contains(&WorkerMessage::Ready) {
            return Ok(true);
        }
        match self.child.try_wait()? {
            None => Ok(false),
            Some(status) => Err(self.failure(&format!("ended at once with {status}"))),
        }
    }

    /// SIGKILL: the process is gone when this returns.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn kill(&mut self) -> Result<()> {
        self.child.kill()?;
        self.child.wait()?;
        Ok(())
    }

    /// SIGSTOP: the process stands still until [`Worker::thaw`].
    ///
    /// # Errors
    /// If the system refuses.
    pub fn freeze(&self) -> Result<()> {
        self.signal(Signal::STOP)
    }

    /// SIGCONT.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn thaw(&self) -> Result<()> {
        self.signal(Signal::CONT)
    }

    /// Makes its clock jump, if it can; one that stands still jumps when it goes on.
    ///
    /// # Errors
    /// If the process is gone.
    pub fn jump(&mut self, jump: Jump) -> Result<()> {
        let line = serde_json::to_string(&jump).expect("it is plain data");
        let stdin = self.child.stdin.as_mut().ok_or_else(|| Failure("it has no input".into()))?;
        writeln!(stdin, "{line}").map_err(|error| Failure::of("make a clock jump", error))
    }

    /// SIGTERM: the process is asked to stop.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn terminate(&self) -> Result<()> {
        self.signal(Signal::TERM)
    }

    /// Lets the process make no file larger than this; `None` lifts the limit.
    ///
    /// # Errors
    /// If the system refuses.
    pub fn limit_files(&self, bytes_max: Option<u64>) -> Result<()> {
        let maximum = getrlimit(Resource::Fsize).maximum;
        let limit = Rlimit { current: bytes_max.or(maximum), maximum };
        prlimit(Some(self.pid()), Resource::Fsize, limit)
            .map_err(|error| Failure::of("limit file sizes", error))?;
        Ok(())
    }

    /// Waits for a process that was asked to stop, and gives its report.
    ///
    /// # Errors
    /// If it does not end, or not with exit code 0 and a report.
    pub async fn stopped(&mut self) -> Result<WorkerMessage> {
        let (what, child) = (format!("end of {}", self.name), &mut self.child);
        let status = until(&what, WAIT_MAX, || Ok(child.try_wait()?)).await?;
        self.report(status)
    }

    /// Whether a process that was asked to stop has done so.
    ///
    /// # Errors
    /// If it ended, but not with exit code 0 and a report.
    pub fn has_stopped(&mut self) -> Result<bool> {
        match self.child.try_wait()? {
            Some(status) => self.report(status).map(|_| true),
            None => Ok(false),
        }
    }

    fn report(&self, status: ExitStatus) -> Result<WorkerMessage> {
        match self.messages()?.pop() {
            Some(report @ WorkerMessage::Stopped { .. }) if status.success() => Ok(report),
            last => {
                Err(self.failure(&format!("ended with {status}, its last message is {last:?}")))
            }
        }
    }

    /// Whether the process ended without having been asked to.
    ///
    /// # Errors
    /// If the system does not tell.
    pub fn has_ended(&mut self) -> Result<bool> {
        Ok(self.child.try_wait()?.is_some())
    }

    /// What it wrote to its standard error.
    #[must_use]
    pub fn stderr(&self) -> String {
        fs::read_to_string(&self.err).unwrap_or_default()
    }

    fn messages(&self) -> Result<Vec<WorkerMessage>> {
        let text = fs::read_to_string(&self.out)?;
        let read = |line| serde_json::from_str(line).map_err(|why| Failure::of(&self.name, why));
        text.lines().map(read).collect()
    }

    fn failure(&self, why: &str) -> Failure {
        Failure(format!("{} {why}\n{}", self.name, self.stderr()))
    }

    fn pid(&self) -> Pid {
        Pid::from_child(&self.child)
    }

    fn signal(&self, signal: Signal) -> Result<()> {
        kill_process(self.pid(), signal).map_err(|error| Failure::of("signal a worker", error))
    }
}

impl Drop for Worker {
    fn drop(&mut self) {
        let _ = self.kill();
    }
}
