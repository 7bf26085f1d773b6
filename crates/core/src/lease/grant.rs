use std::time::Duration;

use super::belief::believed_until;
use crate::{
    clock::Instant,
    store::{Acquire, Granted},
    words::{AcquisitionId, FenceToken, LockName, Ttl},
};

/// Proof that a store granted a lease: only an answer to an acquire makes one.
#[derive(Debug, Clone)]
#[must_use = "a grant that nobody takes over stands until its ttl ends"]
pub struct Grant {
    name: LockName,
    id: AcquisitionId,
    fence: FenceToken,
    ttl: Ttl,
    believed_until: Instant,
}

impl Grant {
    /// Believes an answer to a command that was sent at `sent_at`.
    pub fn from_answer(command: &Acquire<'_>, sent_at: Instant, answer: &Granted) -> Self {
        Self {
            name: command.name.clone(),
            id: command.id,
            fence: answer.first,
            ttl: command.ttl,
            believed_until: believed_until(sent_at, answer.remaining),
        }
    }

    /// The lock that was granted.
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// The acquisition that holds it.
    pub fn id(&self) -> AcquisitionId {
        self.id
    }

    /// The fence token of the lease.
    pub fn fence(&self) -> FenceToken {
        self.fence
    }

    /// The ttl to which renewals extend it.
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// Until when the holder may believe without a renewal.
    pub fn believed_until(&self) -> Instant {
        self.believed_until
    }

    /// How much belief is left at `now`; zero means that the grant came too late.
    pub fn remaining(&self, now: Instant) -> Duration {
        self.believed_until.saturating_since(now)
    }
}
