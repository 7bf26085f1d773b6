use std::time::Duration;

use super::belief::believed_until;
use crate::{
    clock::Instant,
    store::Granted,
    types::{AcquisitionId, FenceToken, LockName, Ttl},
};

/// Proof that a store granted a lock to an acquisition; only what a store tells makes one.
#[derive(Debug, Clone)]
#[must_use = "a grant that nobody takes over stands until its time to live ends"]
pub struct Grant {
    name: LockName,
    id: AcquisitionId,
    first: FenceToken,
    last: FenceToken,
    ttl: Ttl,
    believed_until: Instant,
}

impl Grant {
    /// Believes what a store told of an acquisition that asks for leases of `ttl`.
    ///
    /// What is left of the grant counts from `sent_at`: from before the command that was
    /// answered was sent, or, for a grant that came without being asked for, from before the last
    /// sign of life was sent that the store had heard of. The server counts from later on.
    pub fn told(
        name: &LockName,
        id: AcquisitionId,
        ttl: Ttl,
        sent_at: Instant,
        granted: &Granted,
    ) -> Self {
        Self {
            name: name.clone(),
            id,
            first: granted.first,
            last: granted.last,
            ttl,
            believed_until: believed_until(sent_at, granted.remaining),
        }
    }

    /// The same grant, of which a renewal that was sent at `sent_at` told what is left.
    pub fn renewed(self, sent_at: Instant, remaining: Duration) -> Self {
        Self { believed_until: believed_until(sent_at, remaining), ..self }
    }

    /// The same grant for a holder who wants another ttl.
    pub fn for_ttl(self, ttl: Ttl) -> Self {
        Self { ttl, ..self }
    }

    /// The lock that was granted.
    pub fn name(&self) -> &LockName {
        &self.name
    }

    /// The acquisition that holds it.
    pub fn id(&self) -> AcquisitionId {
        self.id
    }

    /// The first token of the grant, by which commands name it.
    pub fn first(&self) -> FenceToken {
        self.first
    }

    /// The last token of the grant.
    pub fn last(&self) -> FenceToken {
        self.last
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
