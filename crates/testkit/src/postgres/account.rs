use std::{
    fs, io,
    os::unix::{fs::chown, process::CommandExt},
    path::Path,
    process::Command,
};

use rustix::process::geteuid;

/// Whom a server runs as where this process is root, which PostgreSQL refuses.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Account {
    uid: u32,
    gid: u32,
}

impl Account {
    /// Accounts that own nothing of value, best first. PostgreSQL looks its own up by number, so it
    /// has to be one that exists.
    const NAMES: [&str; 2] = ["postgres", "nobody"];

    /// The account to become; `None` where this process may run a server itself.
    ///
    /// # Panics
    ///
    /// Panics if this process is root and none of the accounts exists.
    pub(super) fn to_become() -> Option<Self> {
        if !geteuid().is_root() {
            return None;
        }
        let accounts = fs::read_to_string("/etc/passwd").unwrap_or_default();
        let found = Self::NAMES.iter().find_map(|name| Self::find(&accounts, name));
        assert!(found.is_some(), "PostgreSQL refuses root, and there is none of {:?}", Self::NAMES);
        found
    }

    /// Gives a file or folder to the account.
    pub(super) fn own(self, path: &Path) -> io::Result<()> {
        chown(path, Some(self.uid), Some(self.gid))
    }

    /// Runs a command as the account, with no groups but its own.
    pub(super) fn run(self, command: &mut Command) {
        command.uid(self.uid).gid(self.gid);
    }

    fn find(accounts: &str, name: &str) -> Option<Self> {
        accounts.lines().find_map(|line| {
            let fields: Vec<&str> = line.split(':').collect();
            match fields[..] {
                [found, _, uid, gid, ..] if found == name => {
                    Some(Self { uid: uid.parse().ok()?, gid: gid.parse().ok()? })
                }
                _ => None,
            }
        })
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_account_is_found_by_its_whole_name() {
        let accounts =
            "root:x:0:0:root:/root:/bin/sh\nnobody2:x:7:7::/:\nnobody:x:65534:65533::/:\n";
        assert_eq!(Account::find(accounts, "nobody"), Some(Account { uid: 65534, gid: 65533 }));
        assert_eq!(Account::find(accounts, "postgres"), None);
    }
}
