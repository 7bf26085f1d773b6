/// The kinds of command that a store knows.
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub enum CommandKind {
    /// Asks for a lock.
    Acquire,
    /// Repeats the acquires of a batch of waiters.
    Heartbeat,
    /// Tells the number of holds.
    Hold,
    /// Ends or keeps a lease.
    Release,
    /// Extends a batch of leases.
    Renew,
    /// Takes an acquisition back.
    Withdraw,
    /// Looks at a lock.
    Inspect,
    /// Names some locks.
    Scan,
    /// Ends somebody else's lease.
    ForceRelease,
}

impl CommandKind {
    /// Every kind, for tests that go through all of them.
    pub const ALL: [Self; 9] = [
        Self::Acquire,
        Self::Heartbeat,
        Self::Hold,
        Self::Release,
        Self::Renew,
        Self::Withdraw,
        Self::Inspect,
        Self::Scan,
        Self::ForceRelease,
    ];
}
