use std::time::Duration;

use leasehold_core::{AcquisitionId, Fence, Instant, RuntimeId, seam::Part};

/// What a server did, or what a runtime sent to it, as a spy between the two saw it.
///
/// A history takes deeds in the order in which they happened.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Deed {
    /// The server granted the lock, with a block of tokens; told once per grant.
    Minted {
        /// Who was granted it.
        id: AcquisitionId,
        /// The first token of the block.
        first: Fence,
        /// The last token of the block.
        last: Fence,
    },
    /// The server answered that an acquisition stands in the queue.
    Queued {
        /// Who stands there.
        id: AcquisitionId,
        /// Until when the place lasts if nothing more is heard of it, if this was a sign of life;
        /// otherwise, until when it would if it was made now.
        live_until: Instant,
        /// Whether it certainly was a sign of life: a repeated release refreshes no place.
        refreshed: bool,
    },
    /// A runtime queues under a new acquisition: the server removed its older place, if it had one.
    Superseded {
        /// The new acquisition.
        by: AcquisitionId,
    },
    /// The server withdrew an acquisition.
    Withdrawn {
        /// Which one.
        id: AcquisitionId,
    },
    /// The server answered that it extended a lease.
    Extended {
        /// The acquisition that the command named.
        id: AcquisitionId,
        /// The first token that it named.
        first: Fence,
    },
    /// The server answered that a release ended a lease.
    Ended {
        /// The acquisition that the command named.
        id: AcquisitionId,
        /// The first token that it named.
        first: Fence,
    },
    /// The server answered that a released lock stays closed; told once per grant.
    Kept {
        /// The acquisition that the command named.
        id: AcquisitionId,
        /// The first token that it named.
        first: Fence,
        /// Until when it stays closed.
        until: Instant,
    },
    /// The server told the runtime of a grant that another one wants the lock.
    Wanted {
        /// The first token of its block.
        first: Fence,
    },
    /// An operator ended a grant.
    Forced {
        /// The first token of its block.
        first: Fence,
    },
    /// The server forgot everything.
    Forgot,
    /// The server forgot one part of what it knows of the lock.
    PartLost {
        /// Which one.
        part: Part,
    },
    /// Another server is the master from now on, and what follows is what it does.
    TookOver {
        /// The lease that stands there.
        stands: Option<(AcquisitionId, Fence)>,
        /// Whether it lacks something that was written about the lock, or its clock is ahead.
        is_behind: bool,
        /// Nobody stands by what was granted before; of the grants of this last time before it,
        /// nobody ever did. `None` where all are stood by.
        forsakes: Option<Duration>,
    },
    /// A server that is a master no more granted the lock, too.
    MintedAside {
        /// Who was granted it.
        id: AcquisitionId,
        /// The first token of the block.
        first: Fence,
        /// The last token of the block.
        last: Fence,
        /// Whether the runtime could not know better, and no replica had to acknowledge it: then
        /// nobody stands by it.
        is_void: bool,
    },
    /// A runtime died, with all it believed.
    Crashed {
        /// Which one.
        runtime: RuntimeId,
    },
    /// A runtime sent a command that asks for the lock or keeps a place, its own or as the next of
    /// a release.
    AskSent {
        /// Who asks.
        id: AcquisitionId,
    },
    /// A runtime sent the end of a turn.
    ReleaseSent {
        /// The acquisition that has the turn.
        id: AcquisitionId,
        /// The first token of its block.
        first: Fence,
    },
    /// A runtime sent a withdrawal.
    WithdrawSent {
        /// What it takes back.
        id: AcquisitionId,
    },
    /// A runtime sent a renewal.
    RenewalSent {
        /// The acquisition that has the turn.
        id: AcquisitionId,
        /// The first token of its block.
        first: Fence,
    },
}
