use std::{
    collections::BTreeMap,
    env,
    path::{Path, PathBuf},
    process::Command,
    sync::{Mutex, PoisonError},
};

/// Names the program of every server that a test starts; without it, `redis-server` from `PATH`.
///
/// `scripts/test.sh` runs a test on every server if the test's program contains this name.
// ADR 0047
const PROGRAM: &str = "LEASEHOLD_REDIS_SERVER";

/// The program that servers are started from, unless a test names another.
pub(super) fn program() -> PathBuf {
    env::var_os(PROGRAM).map_or_else(|| "redis-server".into(), PathBuf::from)
}

/// The version of a server's program, and what differs between the versions that are tested.
///
/// A test whose expectations differ by version asks here, and nowhere else.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub struct ServerVersion {
    major: u32,
    minor: u32,
}

impl ServerVersion {
    /// Asks a program for its version; `None` if it cannot be run or tells none.
    pub(super) fn of(program: &Path) -> Option<Self> {
        /// Programs that were asked before: a test starts many servers.
        static KNOWN: Mutex<BTreeMap<PathBuf, ServerVersion>> = Mutex::new(BTreeMap::new());
        let known = || KNOWN.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(version) = known().get(program) {
            return Some(*version);
        }
        let told = Command::new(program).arg("--version").output().ok()?;
        let version = Self::parse(&String::from_utf8_lossy(&told.stdout))?;
        known().insert(program.to_owned(), version);
        Some(version)
    }

    /// Reads `Redis server v=7.0.15 sha=…`. Valkey counts on from the Redis that it was forked
    /// from.
    fn parse(told: &str) -> Option<Self> {
        let (_, number) = told.split_once("v=")?;
        let mut parts = number.split('.').map(str::parse);
        Some(Self { major: parts.next()?.ok()?, minor: parts.next()?.ok()? })
    }

    /// Whether the version is at least this one.
    fn is_at_least(self, major: u32, minor: u32) -> bool {
        self >= Self { major, minor }
    }

    /// Whether `DEBUG` is refused unless `enable-debug-command` allows it; older servers allow
    /// `DEBUG` and refuse the setting.
    pub(super) fn has_debug_switch(self) -> bool {
        self.is_at_least(7, 0)
    }

    /// Whether `lua-replicate-commands no` has scripts copied whole to replicas, which forbids writes after
    /// `TIME`; later servers ignore the setting.
    pub fn can_copy_scripts_whole(self) -> bool {
        !self.is_at_least(7, 0)
    }

    /// Whether the server has `WAITAOF`.
    pub fn has_waitaof(self) -> bool {
        self.is_at_least(7, 2)
    }

    /// Whether `WAIT` counts the writes of its own connection alone; older servers count whatever
    /// was written before the connection's last command.
    pub fn waits_for_own_writes_only(self) -> bool {
        self.is_at_least(7, 2)
    }

    /// What the server says in a script whose user may not run a command.
    pub fn denied_command(self) -> &'static str {
        if self.is_at_least(7, 2) {
            "has no permissions to run the"
        } else {
            "can't run this command"
        }
    }

    /// What the server says in a script whose user may not publish to a channel.
    pub fn denied_channel(self) -> &'static str {
        if self.is_at_least(7, 2) {
            "No permissions to access a channel"
        } else {
            "can't publish to the channel"
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn programs_tell_their_version() {
        for (told, major, minor) in [
            ("Redis server v=6.2.16 sha=00000000:0 malloc=libc bits=64 build=24ff", 6, 2),
            ("Redis server v=7.0.15 sha=00000000:0 malloc=jemalloc-5.3.0 bits=64", 7, 0),
            ("Redis server v=7.9.224 sha=00000000:1 malloc=libc bits=64", 7, 9),
            ("Valkey server v=8.0.1 sha=00000000:1 malloc=libc bits=64", 8, 0),
        ] {
            assert_eq!(ServerVersion::parse(told), Some(ServerVersion { major, minor }));
        }
        assert_eq!(ServerVersion::parse("no server"), None);
        assert_eq!(ServerVersion::of(Path::new("no-such-redis-server")), None);
    }
}
