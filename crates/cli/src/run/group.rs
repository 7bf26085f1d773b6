use std::{fmt, fs};

use nix::{
    errno::Errno,
    sys::signal::{Signal, kill, killpg},
    unistd::{Pid, Uid, User},
};

/// The process group of a command.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(super) struct Group(pub(super) Pid);

/// Processes of a group that run on, as far as the system shows them.
#[derive(Debug, Clone, Default, PartialEq, Eq)]
pub(super) struct Members {
    shown: Vec<String>,
    /// Whether this process may end none of them.
    pub(super) are_refused: bool,
}

impl Group {
    /// Sends a signal to all of them. Returns whether all of them were refused to this process: they
    /// belong to another user.
    pub(super) fn send(self, signal: Signal) -> bool {
        // Otherwise, one got it at least, or all have ended meanwhile.
        killpg(self.0, signal) == Err(Errno::EPERM)
    }

    /// Whether all have ended, and were reaped.
    pub(super) fn is_gone(self) -> bool {
        killpg(self.0, None) == Err(Errno::ESRCH)
    }

    /// Who runs; `None` if nobody does. It reads the list of all processes.
    pub(super) fn left(self) -> Option<Members> {
        let answer = killpg(self.0, None);
        if answer == Err(Errno::ESRCH) {
            return None;
        }
        let listed = self.listed();
        let running: Vec<i32> =
            listed.iter().filter(|(_, is_zombie)| !is_zombie).map(|(pid, _)| *pid).collect();
        // They wait only to be reaped. Where processes of others are hidden, one may run beside them.
        if running.is_empty() && !listed.is_empty() && shows_all() {
            return None;
        }
        let is_refused = |pid: &i32| kill(Pid::from_raw(*pid), None) == Err(Errno::EPERM);
        let are_refused = match &running[..] {
            [] => answer == Err(Errno::EPERM),
            running => running.iter().all(is_refused),
        };
        Some(Members { shown: running.into_iter().map(shown).collect(), are_refused })
    }

    /// Process ids, and who has ended and waits to be reaped; none where the system does not tell.
    fn listed(self) -> Vec<(i32, bool)> {
        let files = fs::read_dir("/proc").into_iter().flatten().flatten();
        let pids = files.filter_map(|file| file.file_name().to_str()?.parse().ok());
        let read = |pid: i32| {
            let stat = fs::read_to_string(format!("/proc/{pid}/stat")).ok()?;
            let (group, is_zombie) = group(&stat)?;
            (group == self.0.as_raw()).then_some((pid, is_zombie))
        };
        pids.filter_map(read).collect()
    }
}

/// Whether the system shows the processes of others, which `hidepid` forbids.
fn shows_all() -> bool {
    fs::read("/proc/1/stat").is_ok()
}

/// The group of a line of `/proc/PID/stat`, and whether its process has ended.
fn group(stat: &str) -> Option<(i32, bool)> {
    // The name before may contain anything.
    let (_, rest) = stat.rsplit_once(") ")?;
    let mut words = rest.split(' ');
    let state = words.next()?;
    Some((words.nth(1)?.parse().ok()?, matches!(state, "Z" | "X")))
}

/// A process, and whose it is.
fn shown(pid: i32) -> String {
    let status = fs::read_to_string(format!("/proc/{pid}/status")).unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("Uid:"));
    // Real, effective, saved: the effective one counts for what it may do.
    let Some(uid) = line.and_then(|line| line.split_whitespace().nth(1)?.parse().ok()) else {
        return format!("process {pid} of another user");
    };
    match User::from_uid(Uid::from_raw(uid)) {
        Ok(Some(user)) => format!("process {pid} of user {}", user.name),
        _ => format!("process {pid} of user {uid}"),
    }
}

impl fmt::Display for Members {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        const SHOWN: usize = 5;
        if self.shown.is_empty() {
            return f.write_str("a process that the system does not show");
        }
        let (first, more) = self.shown.split_at(self.shown.len().min(SHOWN));
        f.write_str(&first.join(", "))?;
        if more.is_empty() { Ok(()) } else { write!(f, " and {} more", more.len()) }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_group_is_read_behind_any_name() {
        assert_eq!(group("7 (a) b) S 1 42 42 0 -1"), Some((42, false)));
        assert_eq!(group("7 (sh) Z 1 9 9 0 -1"), Some((9, true)));
        assert_eq!(group(""), None);
    }

    #[test]
    fn members_are_named_with_their_users() {
        let member = |pid| format!("process {pid} of user root");
        let members = |shown| Members { shown, are_refused: true };
        assert_eq!(members(vec![member(7)]).to_string(), "process 7 of user root");
        let many = members((1..=7).map(member).collect()).to_string();
        assert!(many.ends_with("process 5 of user root and 2 more"), "{many}");
        assert!(Members::default().to_string().contains("does not show"));
    }
}
