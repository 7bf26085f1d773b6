use leasehold_core::{LockName, RuntimeId, store::Push};

/// What goes wrong with a push.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum PushFault {
    /// It is never heard.
    Lose,
    /// It is held until the test calls [`deliver_pushes`](super::FaultyStore::deliver_pushes).
    Delay,
    /// It is heard now, and again when the test calls
    /// [`deliver_pushes`](super::FaultyStore::deliver_pushes).
    Duplicate,
}

/// Which pushes a fault strikes: by default the next one, once. Those that only say that the store
/// can be heard always pass.
#[derive(Debug, Clone)]
#[must_use = "a rule does nothing by itself; give it to `FaultyStore::inject_push`"]
pub struct PushRule {
    fault: PushFault,
    to: Option<RuntimeId>,
    name: Option<LockName>,
    first: u64,
    times: u64,
    seen: u64,
}

impl PushRule {
    /// A rule that strikes the next push with `fault`.
    pub fn new(fault: PushFault) -> Self {
        Self { fault, to: None, name: None, first: 1, times: 1, seen: 0 }
    }

    /// Strikes pushes to this runtime only. Defaults to any runtime.
    pub fn to(mut self, runtime: RuntimeId) -> Self {
        self.to = Some(runtime);
        self
    }

    /// Strikes pushes about this lock only. Defaults to any lock.
    pub fn lock(mut self, name: &LockName) -> Self {
        self.name = Some(name.clone());
        self
    }

    /// Begins with the n-th matching push, counted from 1 since the rule was injected. Defaults to
    /// the first.
    pub fn nth(mut self, n: u64) -> Self {
        self.first = n;
        self
    }

    /// Strikes this many matching pushes in a row. Defaults to one.
    pub fn times(mut self, times: u64) -> Self {
        self.times = times;
        self
    }

    /// Strikes every matching push from the first on. Defaults to one.
    pub fn always(self) -> Self {
        self.times(u64::MAX)
    }

    /// Counts a push if it matches; what strikes it.
    pub(super) fn meets(&mut self, runtime: RuntimeId, push: &Push) -> Option<PushFault> {
        let (Push::Granted { name, .. }
        | Push::ForceReleased { name, .. }
        | Push::Wanted { name, .. }) = push
        else {
            return None;
        };
        let to = self.to.is_none_or(|to| to == runtime);
        if !(to && self.name.as_ref().is_none_or(|of| of == name)) {
            return None;
        }
        self.seen += 1;
        let strikes = self.seen >= self.first && self.seen - self.first < self.times;
        strikes.then_some(self.fault)
    }
}
