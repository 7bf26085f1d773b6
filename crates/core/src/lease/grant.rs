use std::time::Duration;

use super::state::believed_until;
use crate::{
    clock::Instant,
    store::Granted,
    types::{AcquisitionId, Fence, LockName, Mode, Replication, Terms, Ttl},
};

/// Proof that a store granted a lock to an acquisition, made of an answer or a push of the store.
#[derive(Debug, Clone)]
#[must_use = "a grant that is not taken over blocks the lock until it expires"]
// Very many are held, and each allocation has a size of a multiple of 16: another 8 bytes would cost 16.
pub struct Grant {
    name: LockName,
    id: AcquisitionId,
    first: Fence,
    /// How many tokens follow the first one.
    others: u16,
    mode: Mode,
    acks: Replication,
    ttl: Ttl,
    believed_until: Instant,
}

impl Grant {
    /// Makes a grant from an answer or a push, for an acquisition that asks for leases on `terms`.
    ///
    /// `sent_at` is when the answered command was sent; for a push, when the last heartbeat was sent that the
    /// store had. The server counts the remaining time from a later moment.
    pub fn from_granted(
        name: &LockName,
        id: AcquisitionId,
        terms: Terms,
        sent_at: Instant,
        granted: &Granted,
    ) -> Self {
        let others = granted.last.get().saturating_sub(granted.first.get());
        let Terms { ttl, acks, mode } = terms;
        Self {
            name: name.clone(),
            id,
            first: granted.first,
            // A block has 1,024 tokens at most; a longer one is used in part.
            others: u16::try_from(others).unwrap_or(u16::MAX),
            mode,
            acks,
            ttl,
            believed_until: believed_until(sent_at, granted.remaining),
        }
    }

    /// The same grant after a renewal that was sent at `sent_at`, with its remaining time.
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
    pub fn first(&self) -> Fence {
        self.first
    }

    /// The last token of the grant.
    pub fn last(&self) -> Fence {
        self.first.above(self.others.into())
    }

    /// The ttl to which renewals extend it.
    pub fn ttl(&self) -> Ttl {
        self.ttl
    }

    /// Whether its leases are to write, or to read with others.
    pub fn mode(&self) -> Mode {
        self.mode
    }

    /// What tasks have asked of its leases.
    pub fn terms(&self) -> Terms {
        Terms { ttl: self.ttl, acks: self.acks, mode: self.mode }
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
