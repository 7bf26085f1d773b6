use std::{fmt, time::Duration};

use leasehold_core::{AcquisitionId, Fence, Instant};

/// Why a history cannot be one of a correct lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// Two leases have the same token.
    SharedToken {
        /// The token.
        fence: Fence,
        /// One lease.
        first: AcquisitionId,
        /// The other.
        second: AcquisitionId,
    },
    /// One lease has two tokens.
    TwoTokens {
        /// The lease.
        lease: AcquisitionId,
        /// One token.
        first: Fence,
        /// The other.
        second: Fence,
    },
    /// A lease was asked for after another was in its holder's hands, and has a lower token.
    TokenFell {
        /// The lease that was granted before.
        earlier: (AcquisitionId, Fence),
        /// The lease that was asked for after that.
        later: (AcquisitionId, Fence),
    },
    /// The storage accepted a lower token after a higher one.
    StaleWrite {
        /// The highest token that it had accepted.
        highest: Fence,
        /// The token that it accepted after that.
        accepted: Fence,
        /// The place in the storage's order.
        order: u64,
    },
    /// The storage accepted one token from two leases.
    SharedWrite {
        /// The token.
        fence: Fence,
        /// The lease that wrote first.
        first: AcquisitionId,
        /// The lease that wrote after it.
        second: AcquisitionId,
    },
    /// The counter does not show every increment that was accepted.
    LostUpdate {
        /// How many increments were accepted.
        accepted: u64,
        /// What the counter showed.
        found: u64,
    },
    /// Two leases were believed in at the same time; only where that must not be.
    TwoBelievers(Overlap),
    /// The server granted a block that does not lie above the one before.
    BlockFell {
        /// The grant before, and its last token.
        earlier: (AcquisitionId, Fence),
        /// The grant after it, and its first token.
        later: (AcquisitionId, Fence),
    },
    /// A lease has a token that its runtime was not granted.
    ForeignToken {
        /// The lease.
        lease: AcquisitionId,
        /// The token.
        fence: Fence,
    },
    /// One acquisition had two turns.
    TwoTurns {
        /// The acquisition.
        id: AcquisitionId,
        /// The first token of one turn.
        first: Fence,
        /// The first token of the other.
        second: Fence,
    },
    /// A lock was opened that was to stay closed for longer.
    OpenedEarly {
        /// The acquisition under which it was to stay closed.
        id: AcquisitionId,
        /// When it was opened.
        at: Instant,
        /// Until when it was to stay closed.
        until: Instant,
    },
    /// A turn was renewed of which nobody held a lease.
    IdleRenewal {
        /// The acquisition that had the turn.
        id: AcquisitionId,
        /// The first token of the turn.
        first: Fence,
        /// When the renewal was sent.
        at: Instant,
    },
    /// An idle turn was ended before its time, and nobody wanted the lock.
    IdleEnded {
        /// The acquisition that had the turn.
        id: AcquisitionId,
        /// The first token of the turn.
        first: Fence,
        /// When its end was sent.
        at: Instant,
    },
    /// A turn was kept idle although one of its runtime was recalled shortly before.
    KeptAgain {
        /// The acquisition that has the turn.
        id: AcquisitionId,
        /// The first token of the turn.
        first: Fence,
        /// When it had been idle.
        at: Instant,
    },
    /// A task took a lease of a turn whose end its runtime had sent.
    TakenAfterEnd {
        /// The lease.
        lease: AcquisitionId,
        /// The first token of the turn.
        first: Fence,
    },
    /// A runtime asked under an id that it had withdrawn, or whose turn it had ended.
    IdReused {
        /// The id.
        id: AcquisitionId,
        /// When it asked again.
        at: Instant,
    },
    /// The server passed over somebody live who had waited for longer.
    PassedOver {
        /// Who was granted the lock.
        granted: AcquisitionId,
        /// Who had waited for longer.
        waiting: AcquisitionId,
        /// When.
        at: Instant,
    },
    /// A runtime asked anew while it had a live place, and so lost it.
    PlaceGivenUp {
        /// The acquisition that had the place.
        id: AcquisitionId,
        /// The new one.
        asks: AcquisitionId,
        /// When.
        at: Instant,
    },
    /// A grant of an acquisition that its runtime had left behind was released by its first token:
    /// a later grant to the same acquisition would stand with nobody behind it.
    OrphanReleased {
        /// The acquisition.
        id: AcquisitionId,
        /// The first token.
        first: Fence,
        /// When.
        at: Instant,
    },
    /// The server changed another lease than the one that a command named.
    WrongLease {
        /// The acquisition that the command named.
        id: AcquisitionId,
        /// The first token that it named.
        first: Fence,
        /// When.
        at: Instant,
    },
    /// The server queued or granted what it had withdrawn before.
    DeadServed {
        /// The acquisition.
        id: AcquisitionId,
        /// When.
        at: Instant,
    },
    /// A place died although its runtime was there and wanted it.
    PlaceDied {
        /// The acquisition that had the place.
        id: AcquisitionId,
        /// Until when the place was live.
        live_until: Instant,
    },
    /// A grant was taken by nobody although somebody waited for it.
    GrantWasted {
        /// The acquisition that was granted the lock.
        id: AcquisitionId,
        /// The first token.
        first: Fence,
        /// When it was granted.
        at: Instant,
    },
    /// A holder was told that its lease is gone, and nothing had ended it.
    LostForNothing {
        /// The lease.
        lease: AcquisitionId,
        /// When.
        at: Instant,
    },
    /// Nothing went wrong, somebody waited, and nobody believed for too long.
    NobodyServed {
        /// From when on.
        from: Instant,
        /// Until when.
        until: Instant,
        /// For how long that would have been all right.
        patience: Duration,
    },
}

/// A time in which two leases of the lock were believed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The lease that was believed in first.
    pub first: AcquisitionId,
    /// The lease that came in between.
    pub second: AcquisitionId,
    /// For how long both were believed in.
    pub by: Duration,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SharedToken { fence, first, second } => {
                write!(f, "leases {first} and {second} have the same token {fence}")
            }
            Self::TwoTokens { lease, first, second } => {
                write!(f, "lease {lease} has two tokens, {first} and {second}")
            }
            Self::TokenFell { earlier, later } => write!(
                f,
                "lease {} was asked for after {} was granted, and its token {} is below {}",
                later.0, earlier.0, later.1, earlier.1
            ),
            Self::StaleWrite { highest, accepted, order } => {
                write!(f, "write {order} with token {accepted} was accepted after {highest}")
            }
            Self::SharedWrite { fence, first, second } => {
                write!(f, "writes of leases {first} and {second} were accepted with token {fence}")
            }
            Self::LostUpdate { accepted, found } => {
                write!(f, "{accepted} increments were accepted and the counter shows {found}")
            }
            Self::TwoBelievers(Overlap { first, second, by }) => {
                write!(f, "leases {first} and {second} were both believed in for {by:?}")
            }
            Self::BlockFell { earlier: (before, last), later: (after, first) } => {
                write!(f, "{after} was granted {first}, and {before} had had {last} before")
            }
            Self::ForeignToken { lease, fence } => {
                write!(f, "lease {lease} has token {fence}, which its runtime was not granted")
            }
            Self::TwoTurns { id, first, second } => {
                write!(f, "{id} had two turns, from {first} and from {second}")
            }
            Self::OpenedEarly { id, at, until } => {
                write!(f, "at {at:?} the lock was opened that {id} kept closed until {until:?}")
            }
            Self::IdleRenewal { id, first, at } => {
                write!(f, "at {at:?} {id} renewed its turn {first}, of which nobody held a lease")
            }
            Self::IdleEnded { id, first, at } => {
                write!(f, "at {at:?} {id} ended its idle turn {first}, which nobody wanted")
            }
            Self::KeptAgain { id, first, at } => {
                write!(f, "at {at:?} {id} had kept turn {first} idle, too soon after a recall")
            }
            Self::TakenAfterEnd { lease, first } => {
                write!(f, "{lease} was taken of turn {first} after the end of that turn was sent")
            }
            Self::IdReused { id, at } => {
                write!(f, "at {at:?} {id} asked again after it was withdrawn or its turn ended")
            }
            Self::PassedOver { granted, waiting, at } => {
                write!(f, "at {at:?} {granted} was granted the lock, {waiting} had waited longer")
            }
            Self::PlaceGivenUp { id, asks, at } => {
                write!(f, "at {at:?} {asks} asked anew, although {id} had a live place")
            }
            Self::OrphanReleased { id, first, at } => write!(
                f,
                "at {at:?} {id}, long left behind, was released by its token {first} and not withdrawn"
            ),
            Self::WrongLease { id, first, at } => {
                write!(f, "at {at:?} a command for {id} with {first} changed another lease")
            }
            Self::DeadServed { id, at } => {
                write!(f, "at {at:?} {id} was queued or granted, and had been withdrawn")
            }
            Self::PlaceDied { id, live_until } => {
                write!(f, "the place of {id} died at {live_until:?} although its runtime wanted it")
            }
            Self::GrantWasted { id, first, at } => {
                write!(f, "at {at:?} {id} was granted {first}, which nobody took")
            }
            Self::LostForNothing { lease, at } => {
                write!(f, "at {at:?} lease {lease} was told gone, and nothing had ended it")
            }
            Self::NobodyServed { from, until, patience } => write!(
                f,
                "from {from:?} to {until:?} somebody waited and nobody believed: more than {patience:?}"
            ),
        }
    }
}
