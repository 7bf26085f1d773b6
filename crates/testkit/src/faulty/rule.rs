use leasehold_core::{LockName, store::Command};

use super::{facts::CommandFacts, fault::Fault, kind::CommandKind};

/// Which commands a fault strikes: by default the next command of any kind, once.
#[derive(Debug, Clone)]
#[must_use = "a rule does nothing by itself; give it to `FaultyStore::inject`"]
pub struct Rule {
    fault: Fault,
    kind: Option<CommandKind>,
    name: Option<LockName>,
    first: u64,
    times: u64,
    seen: u64,
}

impl Rule {
    /// A rule that strikes the next command with `fault`.
    pub fn new(fault: Fault) -> Self {
        Self { fault, kind: None, name: None, first: 1, times: 1, seen: 0 }
    }

    /// Strikes commands of this kind only. Defaults to any kind.
    pub fn on(mut self, kind: CommandKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Strikes commands about this lock only. Defaults to any lock.
    pub fn lock(mut self, name: &LockName) -> Self {
        self.name = Some(name.clone());
        self
    }

    /// Begins with the n-th matching command, counted from 1 since the rule was injected.
    /// Defaults to the first.
    pub fn nth(mut self, n: u64) -> Self {
        self.first = n;
        self
    }

    /// Strikes this many matching commands in a row. Defaults to one.
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Strikes every matching command from the first on. Defaults to one.
    pub fn always(self) -> Self {
        self.times(u64::MAX)
    }

    /// Counts a command if it matches; whether it is struck.
    pub(super) fn meets(&mut self, command: &Command) -> bool {
        let kind = self.kind.is_none_or(|kind| kind == command.kind());
        let name = self.name.as_ref().is_none_or(|name| command.names().contains(&name));
        if !(kind && name) {
            return false;
        }
        self.seen += 1;
        self.seen >= self.first && self.seen - self.first < self.times
    }

    /// What strikes.
    pub(super) fn fault(&self) -> Fault {
        self.fault.clone()
    }
}
