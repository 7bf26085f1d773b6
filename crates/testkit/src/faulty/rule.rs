use leasehold_core::{
    LockName, RuntimeId,
    store::{Command, Push},
};

use super::{
    facts::CommandFacts,
    fault::{Fault, PushFault},
    kind::CommandKind,
};

/// Which commands, or pushes, a fault strikes: by default the next one of any kind, once. Pushes that only
/// say that the store can be heard always pass.
#[derive(Debug, Clone)]
#[must_use = "a rule does nothing by itself; give it to `FaultyStore::inject`"]
pub struct Rule<F = Fault> {
    fault: F,
    kind: Option<CommandKind>,
    to: Option<RuntimeId>,
    name: Option<LockName>,
    first: u64,
    times: u64,
    seen: u64,
}

/// Which pushes a fault strikes.
pub type PushRule = Rule<PushFault>;

impl<F: Clone> Rule<F> {
    /// A rule that strikes the next one with `fault`.
    pub fn new(fault: F) -> Self {
        Self { fault, kind: None, to: None, name: None, first: 1, times: 1, seen: 0 }
    }

    /// Strikes those about this lock only. Defaults to any lock.
    pub fn lock(mut self, name: &LockName) -> Self {
        self.name = Some(name.clone());
        self
    }

    /// Begins with the n-th that matches, counted from 1 since the rule was injected. Defaults to
    /// the first.
    pub fn nth(mut self, n: u64) -> Self {
        self.first = n;
        self
    }

    /// Strikes this many that match in a row. Defaults to one.
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Strikes every one that matches from the first on. Defaults to one.
    pub fn always(self) -> Self {
        self.times(u64::MAX)
    }

    /// Counts one if it matches; what strikes it.
    fn count(&mut self, matches: bool) -> Option<F> {
        self.seen += u64::from(matches);
        let strikes = self.seen >= self.first && self.seen - self.first < self.times;
        (matches && strikes).then(|| self.fault.clone())
    }
}

impl Rule {
    /// Strikes commands of this kind only. Defaults to any kind.
    pub fn on(mut self, kind: CommandKind) -> Self {
        self.kind = Some(kind);
        self
    }

    /// Counts a command if it matches; what strikes it.
    pub(super) fn meets(&mut self, command: &Command) -> Option<Fault> {
        let kind = self.kind.is_none_or(|kind| kind == command.kind());
        let name = self.name.as_ref().is_none_or(|name| command.names().contains(&name));
        self.count(kind && name)
    }
}

impl PushRule {
    /// Strikes pushes to this runtime only. Defaults to any runtime.
    pub fn to(mut self, runtime: RuntimeId) -> Self {
        self.to = Some(runtime);
        self
    }

    /// Counts a push if it matches; what strikes it.
    pub(super) fn meets_push(&mut self, runtime: RuntimeId, push: &Push) -> Option<PushFault> {
        let (Push::Granted { name, .. }
        | Push::ForceReleased { name, .. }
        | Push::Wanted { name, .. }) = push
        else {
            return None;
        };
        let to = self.to.is_none_or(|to| to == runtime);
        self.count(to && self.name.as_ref().is_none_or(|of| of == name))
    }
}
