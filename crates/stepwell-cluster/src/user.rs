//! Whom the server runs as.

use std::fs;
use std::os::unix::fs::MetadataExt;
use std::os::unix::process::CommandExt;
use std::path::PathBuf;
use std::process::Command;

use crate::{ClusterError, failure};

/// A user without rights of its own.
#[derive(Clone, Copy, Debug)]
pub(crate) struct User {
    pub(crate) uid: u32,
    pub(crate) gid: u32,
}

/// Whom root hands the server to; `None` for anybody else.
pub(crate) fn unprivileged_user() -> Result<Option<User>, ClusterError> {
    let own = fs::metadata("/proc/self").map_err(|error| failure("read the own user", &error))?;
    if own.uid() != 0 {
        return Ok(None);
    }
    let users = fs::read_to_string("/etc/passwd").map_err(|error| failure("read users", &error))?;
    let find = |name: &str| users.lines().find_map(|line| user(line, name));
    let missing = || ClusterError("there is no user to run PostgreSQL as".into());
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

/// A command as this user.
pub(crate) fn command(program: PathBuf, user: Option<User>) -> Command {
    let mut command = Command::new(program);
    // The caller's folder may be closed to the other user.
    command.current_dir("/");
    if let Some(user) = user {
        command.uid(user.uid).gid(user.gid);
    }
    command
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
