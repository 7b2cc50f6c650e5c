//! Finding or installing the programs of the server and of a pooler.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

/// Names the folder of the server's programs to use, whatever else is installed.
pub const PROGRAMS_VARIABLE: &str = "STEPWELL_POSTGRES_PROGRAMS";

/// The folder of the server that the environment names, or of the newest there is.
#[must_use]
pub fn find_programs() -> Option<PathBuf> {
    if let Some(folder) = std::env::var_os(PROGRAMS_VARIABLE) {
        return Some(PathBuf::from(folder)).filter(|folder| folder.join("initdb").is_file());
    }
    let told = Command::new("pg_config").arg("--bindir").output().ok();
    let told = told.and_then(|output| String::from_utf8(output.stdout).ok());
    let mut folders: Vec<PathBuf> = told.iter().map(|text| PathBuf::from(text.trim())).collect();
    let debian = fs::read_dir("/usr/lib/postgresql").into_iter().flatten().flatten();
    let mut debian: Vec<PathBuf> = debian.map(|entry| entry.path().join("bin")).collect();
    debian.sort();
    folders.extend(debian.into_iter().rev());
    folders.into_iter().find(|folder| folder.join("initdb").is_file())
}

/// Installs Debian's package, where that can be done, and gives the folder of its programs.
#[must_use]
pub fn install_programs() -> Option<PathBuf> {
    install("postgresql").and_then(|()| find_programs())
}

/// The pooler's program.
#[must_use]
pub fn find_pgbouncer() -> Option<PathBuf> {
    let path = std::env::var_os("PATH").unwrap_or_default();
    let folders =
        std::env::split_paths(&path).chain(["/usr/sbin".into(), "/usr/local/sbin".into()]);
    folders.map(|folder| folder.join("pgbouncer")).find(|program| program.is_file())
}

/// Installs Debian's package, where that can be done, and gives the pooler's program.
#[must_use]
pub fn install_pgbouncer() -> Option<PathBuf> {
    install("pgbouncer").and_then(|()| find_pgbouncer())
}

fn install(package: &str) -> Option<()> {
    let apt = |arguments: &[&str]| {
        let mut command = Command::new("apt-get");
        command.args(arguments).env("DEBIAN_FRONTEND", "noninteractive");
        command.status().is_ok_and(|status| status.success())
    };
    (apt(&["update", "-q"]) && apt(&["install", "-q", "-y", package])).then_some(())
}
