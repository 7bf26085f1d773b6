use std::{fmt, sync::Weak, time::Duration};

use leasehold_core::{
    AcquisitionId, Instant, LockName, NamePattern, RuntimeId, RuntimeLabel, StoreError, Ttl,
    lease::HoldUpdate,
    store::{Listener, WaiterRecord},
};

/// One of the independent masters of a quorum.
pub trait QuorumNode: fmt::Debug + Send + Sync + 'static {
    /// Sends a command, and returns the answer, an error by the deadline at the latest.
    fn send(
        &self,
        command: NodeCommand,
        deadline: Instant,
    ) -> impl Future<Output = NodeReply> + Send;

    /// Sends many commands out of the way of all others; one answer for each.
    fn send_apart(
        &self,
        commands: Vec<NodeCommand>,
        deadline: Instant,
    ) -> impl Future<Output = Vec<NodeReply>> + Send;

    /// Names some of the locks that the node knows, from a place of its table on, and says where to
    /// go on; nowhere at the end. One short step.
    fn scan(
        &self,
        pattern: &NamePattern,
        at: u64,
        deadline: Instant,
    ) -> impl Future<Output = Result<(Vec<LockName>, Option<u64>), StoreError>> + Send;

    /// Whether commands can be sent at once; if not, it is made ready in the background.
    fn is_ready(&self) -> bool {
        true
    }

    /// The node has lost its boot mark: it is looked at anew.
    fn has_no_mark(&self) {}

    /// Passes the messages of the node for a runtime to a listener.
    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>);

    /// Where it is, for errors.
    fn place(&self) -> String;
}

/// A command to one node of a quorum, about one lock. Each may run twice or late.
#[derive(Debug, Clone)]
pub struct NodeCommand {
    /// The lock.
    pub name: LockName,
    /// Whose command it is.
    pub id: AcquisitionId,
    /// What to do.
    pub word: Word,
}

/// What a node is to do.
///
/// An acquisition may try several times, one try after the other. Each try has an attempt number of its own, and a
/// node never takes one for another.
#[derive(Debug, Clone)]
pub enum Word {
    /// Vote for a lease.
    Ask {
        /// The number of this try.
        attempt: u64,
        /// The fence that the acquisition proposes.
        ballot: u64,
        /// How long the lease is to live.
        ttl: Duration,
        /// For how long it has been asked for; zero at first.
        waited: Duration,
        /// For how long the node remembers that it waits; zero if it does not.
        heard: Duration,
        /// The asking runtime's label.
        label: RuntimeLabel,
        /// Whether its runtime may keep the lock idle.
        keeps: bool,
    },
    /// Give a lease that the node granted another fence.
    Settle {
        /// The try that was granted.
        attempt: u64,
        /// The fence that a majority is to have.
        fence: u64,
    },
    /// Extend a lease; never grants.
    Renew {
        /// The try that was granted.
        attempt: u64,
        /// The fence of the lease.
        fence: u64,
        /// To which ttl it is extended.
        ttl: Duration,
    },
    /// Vote for a lease that a majority granted already, on a node that was not asked for it before.
    Spread {
        /// The try that was granted.
        attempt: u64,
        /// The fence of the lease.
        fence: u64,
        /// The last token before its block.
        before: u64,
        /// How long it is to live.
        ttl: Duration,
        /// The holds, if they ever changed.
        holds: Option<HoldUpdate>,
        /// The label of the holder's runtime.
        label: RuntimeLabel,
        /// Whether its runtime may keep the lock idle.
        keeps: bool,
    },
    /// Set the absolute number of holds, and extend the lease.
    Hold {
        /// The try that was granted.
        attempt: u64,
        /// The holds, with the number of their change.
        update: HoldUpdate,
        /// To which ttl it is extended.
        ttl: Ttl,
    },
    /// End a lease.
    End {
        /// The try that was granted; 0 for any.
        attempt: u64,
        /// A token of its block; 0 for any.
        fence: u64,
        /// Whether a node without the lease remembers the try as dead: its vote may arrive later.
        marks: bool,
    },
    /// Keep a lock closed for exactly a time, in place of its lease.
    Keep {
        /// The try that was granted; 0 for any.
        attempt: u64,
        /// A token of its block; 0 for any.
        fence: u64,
        /// For how long.
        rest: Duration,
    },
    /// Withdraw all tries of the acquisition, and its place in the queue.
    Withdraw,
    /// End the lease that an operator saw, and move the fence on.
    Force {
        /// A token of its block.
        fence: u64,
    },
    /// Accept no token up to this one: a lease that was ended elsewhere may not come here.
    Pass {
        /// A token above those of the ended lease.
        fence: u64,
    },
    /// Tell who holds the lock.
    Inspect,
}

impl Word {
    /// The number of its try; 0 for any.
    pub fn attempt(&self) -> u64 {
        match *self {
            Self::Ask { attempt, .. }
            | Self::Settle { attempt, .. }
            | Self::Renew { attempt, .. }
            | Self::Spread { attempt, .. }
            | Self::Hold { attempt, .. }
            | Self::End { attempt, .. }
            | Self::Keep { attempt, .. } => attempt,
            Self::Withdraw | Self::Force { .. } | Self::Pass { .. } | Self::Inspect => 0,
        }
    }
}

/// The answer of a node to a command, or its failure.
pub type NodeReply = Result<NodeAnswer, StoreError>;

/// What a node answers.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum NodeAnswer {
    /// It has granted the lease, now or before.
    Granted(Vote),
    /// Another try holds the lock there, or the turn is another's.
    Busy(Busy),
    /// The acquisition is dead; whether a grant was ended.
    Withdrawn {
        /// Whether a grant was ended.
        ended: bool,
    },
    /// The lease stands.
    Held {
        /// How long it has left.
        remaining: Duration,
        /// Whether others are known to wait; set only by the answer that settles a lease.
        contended: bool,
    },
    /// There is no such lease.
    Gone,
    /// The lease was ended.
    Ended {
        /// The node's counter by now; 0 if the answer does not have it.
        counter: u64,
    },
    /// The lock is closed for a while.
    Kept {
        /// For how long.
        remaining: Duration,
    },
    /// Nobody holds the lock.
    Free {
        /// The node's counter, 0 for none.
        counter: u64,
    },
    /// Somebody holds the lock.
    Record(Box<NodeLease>),
    /// The node has lost data, and does not vote yet.
    Out {
        /// When it will; `None` if it has no boot mark.
        rest: Option<Duration>,
    },
}

/// A grant of one node.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Vote {
    /// The highest token that the node had accepted before; 0 if it knows of none.
    pub before: u64,
    /// Whether the node accepted the ballot as the fence.
    pub accepted: bool,
    /// The least number that it would accept.
    pub least: u64,
    /// How long the lease has left there.
    pub remaining: Duration,
    /// Whether others wait for the lock.
    pub contended: bool,
    /// The node's time, in microseconds since the Unix epoch; 0 if the answer does not have it.
    pub now: u64,
}

/// A refusal of one node.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Busy {
    /// How long until the node may grant the lock.
    pub remaining: Duration,
    /// Whether the holder's runtime may keep the lock idle.
    pub keeps: bool,
    /// How many runtimes wait there for longer.
    pub older: u64,
    /// Who holds it; `None` while it is another's turn.
    pub holder: Option<AcquisitionId>,
    /// The node's time, in microseconds since the Unix epoch.
    pub now: u64,
}

/// A lease as one node has it.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct NodeLease {
    /// Who holds it.
    pub id: AcquisitionId,
    /// The try that was granted.
    pub attempt: u64,
    /// The last token of its block, 0 until it is settled.
    pub fence: u64,
    /// The last token before its block, 0 if none was known.
    pub before: u64,
    /// The nested holds.
    pub holds: u32,
    /// How long it has left.
    pub remaining: Duration,
    /// The label of the holder's runtime, with its mark.
    pub label: String,
    /// How long ago it was granted.
    pub held_for: Duration,
    /// Whether the lock is only kept closed.
    pub kept: bool,
    /// Who waits, as the node has seen it.
    pub waiters: Vec<WaiterRecord>,
}
