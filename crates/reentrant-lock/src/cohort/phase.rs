use std::task::Waker;

use leasehold_core::{AcquisitionId, Instant, Ttl};

use super::{effects::NextPlace, gap::Gap, place::Place, queue::Ticket, turn::Turn};

/// What a runtime has of a name in Redis: one live acquisition at most.
// Very many names have a quiet turn: whatever is larger is boxed.
#[derive(Debug)]
pub(crate) enum Phase {
    /// Nothing.
    Idle,
    /// The first task of all asks by itself.
    Asking(Asking),
    /// A place in the queue.
    Place(Box<Place>),
    /// The lock.
    Turn(Turn),
    /// The lock, which is being given back: no token is offered any more.
    Ending(Box<Ending>),
}

/// A first command whose answer the task awaits that sent it.
#[derive(Debug)]
pub(crate) struct Asking {
    pub(super) id: AcquisitionId,
    pub(super) ttl: Ttl,
    pub(super) lead: Ticket,
    pub(super) heartbeat: Option<u64>,
    pub(super) sent_at: Instant,
    /// When its task was polled last.
    pub(super) polled_at: Instant,
    /// When its task is to be woken, to show that it is there; `None` once it was.
    pub(super) calls_at: Option<Instant>,
    /// Messages may have been lost: when the runtime asks again.
    pub(super) asks_soon: Option<Instant>,
}

/// A turn that is being given back.
#[derive(Debug)]
pub(crate) struct Ending {
    pub(super) turn: Turn,
    pub(super) next: Option<NextPlace>,
    /// Whether the release may have been sent: with what it was sent it is sent again.
    pub(super) departed: bool,
    /// Until when the lock stays closed nevertheless.
    pub(super) closed_until: Option<Instant>,
    /// Whether more than one copy of the release was sent.
    pub(super) repeated: bool,
    /// When the release was asked for.
    pub(super) since: Instant,
    /// Whether the runtime sees to it, rather than whoever gave the last lease back.
    pub(super) driven: bool,
    /// Messages that may have been lost since it was sent.
    pub(super) gap: Gap,
    /// Tasks that try the lock once this is over.
    pub(super) watchers: Vec<Waker>,
    /// Until when the first of them waits for that.
    pub(super) watched_until: Option<Instant>,
}

impl Phase {
    /// The phase until now, with nothing in its place.
    pub(super) fn take(&mut self) -> Self {
        std::mem::replace(self, Self::Idle)
    }
}
