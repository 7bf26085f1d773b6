use std::fmt;

use leasehold_core::{LockName, RuntimeId};

/// A cycle of waits: each step holds a lock for which the step before it waits.
///
/// Waits end with their time, and then the cycle does. Where callers take several locks in one
/// order, as `LockRuntime::all` does, there is none.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct Cycle {
    /// How sure it is.
    pub certainty: Certainty,
    /// The steps; the last one waits for the first.
    pub steps: Vec<CycleStep>,
}

/// How sure it is that none of a [`Cycle`] goes on by itself.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Certainty {
    /// It may be that none goes on: Redis knows processes and not tasks. One task of a process may
    /// hold a lock, and another task wait for the next.
    Possible,
    /// None goes on before its wait is over: each step is an owner of this runtime that waits for
    /// one lock alone, as long as nothing else ends its leases.
    Certain,
}

/// One step of a [`Cycle`]: a process, or with [`Certainty::Certain`] an owner of this one.
#[derive(Debug, Clone, PartialEq, Eq)]
#[non_exhaustive]
pub struct CycleStep {
    /// The runtime.
    pub runtime: RuntimeId,
    /// Its label.
    pub label: String,
    /// The lock that it holds, for which the step before waits.
    pub holds: LockName,
    /// The lock for which it waits.
    pub waits_for: LockName,
}

impl Cycle {
    /// Returns the locks of the cycle, each once.
    pub fn locks(&self) -> impl Iterator<Item = &LockName> {
        self.steps.iter().map(|step| &step.holds)
    }
}

impl fmt::Display for Cycle {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, CycleStep { label, holds, waits_for, .. }) in self.steps.iter().enumerate() {
            f.write_str(if at == 0 { "" } else { ", " })?;
            let who = match self.certainty {
                Certainty::Certain => "an owner",
                Certainty::Possible => label,
            };
            write!(f, "{who} holds {holds:?} and waits for {waits_for:?}")?;
        }
        Ok(())
    }
}
