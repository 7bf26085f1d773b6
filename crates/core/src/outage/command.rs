use crate::types::{AcquisitionId, FenceToken, LockName};

/// The kinds of command that a runtime sends.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
#[non_exhaustive]
pub enum CommandKind {
    /// Asks for one lock.
    Acquire,
    /// Asks again for locks that tasks wait for.
    Heartbeat,
    /// Sets the number of holds of a lease.
    Hold,
    /// Ends a lease, or keeps its lock closed.
    Release,
    /// Extends leases.
    Renew,
    /// Takes an acquisition back.
    Withdraw,
    /// Returns who holds a lock.
    Inspect,
    /// Ends the lease that was inspected.
    ForceRelease,
}

impl CommandKind {
    /// Every kind, in a fixed order.
    pub const ALL: &[Self] = &[
        Self::Acquire,
        Self::Heartbeat,
        Self::Hold,
        Self::Release,
        Self::Renew,
        Self::Withdraw,
        Self::Inspect,
        Self::ForceRelease,
    ];

    /// The kind as logs show it.
    pub fn as_label(self) -> &'static str {
        match self {
            Self::Acquire => "acquire",
            Self::Heartbeat => "heartbeat",
            Self::Hold => "hold",
            Self::Release => "release",
            Self::Renew => "renew",
            Self::Withdraw => "withdraw",
            Self::Inspect => "inspect",
            Self::ForceRelease => "force_release",
        }
    }
}

/// What one command is about. A batch about several locks names none of them.
#[derive(Debug, Clone, Copy)]
pub struct Subject<'a> {
    /// What the command does.
    pub command: CommandKind,
    /// The lock.
    pub lock: Option<&'a LockName>,
    /// The lease, where there is one already.
    pub lease: Option<AcquisitionId>,
    /// The fence of that lease.
    pub fence: Option<FenceToken>,
}

impl<'a> Subject<'a> {
    /// The name that is inspected to find out whether the server answers.
    pub const PROBE: &'static str = "leasehold:probe";

    /// Whether the command only asks whether the server answers.
    pub fn is_probe(&self) -> bool {
        self.lock.is_some_and(|lock| lock.as_str() == Self::PROBE)
    }

    /// A command about several locks.
    pub fn many(command: CommandKind) -> Self {
        Self { command, lock: None, lease: None, fence: None }
    }

    /// A command about one lock.
    pub fn lock(command: CommandKind, lock: &'a LockName) -> Self {
        Self { lock: Some(lock), ..Self::many(command) }
    }

    /// A command about one lease.
    pub fn lease(
        command: CommandKind,
        lock: &'a LockName,
        lease: AcquisitionId,
        fence: FenceToken,
    ) -> Self {
        Self { lease: Some(lease), fence: Some(fence), ..Self::lock(command, lock) }
    }
}
