//! A primary with a standby that streams from it, for tests of fail-overs.

use std::path::Path;

use crate::server::Server;
use crate::{ClusterError, ClusterOptions};

/// A running primary and its standby; both end and are removed when this is dropped.
///
/// The standby is synchronous: what the primary acknowledged is on the standby too, until the
/// standby is [cut off](Self::cut_off_standby), and nothing after that. So a test says exactly what
/// a fail-over loses.
///
/// ```no_run
/// # fn fail_over() -> Result<(), Box<dyn std::error::Error>> {
/// let programs = stepwell_cluster::find_programs().ok_or("no server is installed")?;
/// let mut pair = stepwell_cluster::Pair::start(&programs, Vec::new())?;
/// // Connect engines to `pair.url()`. What they are told now survives …
/// pair.cut_off_standby()?;
/// // … and what they are told now is lost.
/// pair.kill_primary()?;
/// pair.promote_standby()?;
/// # Ok(()) }
/// ```
#[derive(Debug)]
pub struct Pair {
    primary: Server,
    standby: Server,
}

/// The name under which the standby connects to the primary.
const STANDBY: &str = "standby";

impl Pair {
    /// Starts both with the programs in this folder, and with settings other than the server's
    /// own, each as `name=value`.
    ///
    /// # Errors
    /// When there is no room for them, nobody to run them as, or when they do not come up.
    pub fn start(programs: &Path, settings: Vec<String>) -> Result<Self, ClusterError> {
        // Both outlive the crashes of tests, which are those of processes and not of machines.
        let options = ClusterOptions { is_durable: false, settings };
        let mut primary = Server::prepare(programs, &options)?;
        let mut standby = Server::prepare(programs, &options)?;
        primary.initialise(false)?;
        // Nothing was written yet, so a copy is as good as a backup.
        standby.copy(&primary)?;
        let upstream = format!("host={} user=stepwell application_name={STANDBY}", primary.host());
        standby.configure("postgresql.conf", &format!("primary_conninfo = '{upstream}'\n"))?;
        standby.configure("standby.signal", "")?;
        primary
            .configure("postgresql.conf", &format!("synchronous_standby_names = '{STANDBY}'\n"))?;
        primary.start()?;
        standby.start()?;
        Ok(Self { primary, standby })
    }

    /// How a client connects to whichever of the two takes writes.
    #[must_use]
    pub fn url(&self) -> String {
        let (primary, standby) = (self.primary.host(), self.standby.host());
        url(&format!("{primary},{standby}")) + " target_session_attrs=read-write"
    }

    /// How a client connects to the primary alone.
    #[must_use]
    pub fn primary_url(&self) -> String {
        url(&self.primary.host())
    }

    /// How a client connects to the standby alone, to read or once it was promoted.
    #[must_use]
    pub fn standby_url(&self) -> String {
        url(&self.standby.host())
    }

    /// Cuts the standby off: the primary goes on alone, and what it acknowledges from now on never
    /// reaches the standby.
    ///
    /// # Errors
    /// When the system refuses, or the primary does not live.
    pub fn cut_off_standby(&mut self) -> Result<(), ClusterError> {
        self.standby.stop()?;
        self.primary.configure("postgresql.conf", "synchronous_standby_names = ''\n")?;
        self.primary.control(&["reload"])
    }

    /// SIGKILL: the primary's process is gone when this returns, and never comes back.
    ///
    /// # Errors
    /// When the system refuses.
    pub fn kill_primary(&mut self) -> Result<(), ClusterError> {
        self.primary.kill()
    }

    /// Makes the standby a primary; it takes writes when this returns. The old primary has to be
    /// [killed](Self::kill_primary) before.
    ///
    /// # Errors
    /// When it does not come up, or is none any more.
    pub fn promote_standby(&mut self) -> Result<(), ClusterError> {
        if !self.standby.is_started() {
            self.standby.start()?;
        }
        self.standby.control(&["promote"])
    }
}

fn url(host: &str) -> String {
    format!("host={host} user=stepwell dbname=postgres")
}
