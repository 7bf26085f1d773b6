//! The decisions of turns, for tests that replace one of them by a wrong one.

use std::time::Duration;

use leasehold_core::{AcquisitionId, Fence, Instant, LockName, Origin, Replication};

/// Decisions as plain functions; the real ones by default.
///
/// Each answers a question that the rules have to ask anyway. A wrong runtime that only sends or
/// hears something else is a store of the testkit (`WrongStore`), and not a decision here.
#[derive(Debug, Clone, Copy)]
// ADR 0047
pub struct Rules {
    /// From when on a pushed grant counts, by when the heartbeat that it names was sent.
    pub push_counts_from: fn(sent_at: Instant, arrived_at: Instant) -> Instant,
    /// Whether a grant is new, by its first token and that of the last turn begun.
    pub is_news: fn(first: Fence, begun: Option<Fence>) -> bool,
    /// Whether a grant that waited for no acknowledgement has to be confirmed, by those that its
    /// leases ask for.
    pub needs_acks: fn(asked: Replication) -> bool,
    /// The id with which a runtime queues anew, by a fresh one and that of its turn.
    pub next_id: fn(fresh: AcquisitionId, old: AcquisitionId) -> AcquisitionId,
    /// Whether a task may take an offer, by the ticket of the task that it was made to and its own.
    pub may_take: fn(offered_to: u64, own: u64) -> bool,
    /// Until when an offer may be taken, by when it was made.
    pub offer_ends: fn(offered_at: Instant, claim_window: Duration) -> Instant,
    /// Whether a turn may be believed in.
    pub is_believed: fn(now: Instant, until: Instant) -> bool,
    /// Whether a turn ends with a lease whose lock is to stay closed for a rest of time.
    pub ends_turn: fn(rest: Option<Duration>) -> bool,
    /// From when on a first command counts as left alone, by when it was sent and when its task was
    /// polled last.
    pub attended_from: fn(sent_at: Instant, polled_at: Instant) -> Instant,
    /// How long a command may take that carries a place, by the time of a heartbeat and that of any
    /// other command.
    pub place_deadline: fn(heartbeat: Duration, command: Duration) -> Duration,
    /// Whether turns of a name are kept, by whether it is worth it: others did not want it of late.
    pub keeps: fn(is_worth_it: bool) -> bool,
    /// Whether a turn is renewed, by whether a task holds a lease of it.
    pub renews: fn(is_held: bool) -> bool,
    /// Puts the names of several locks in the order in which every caller takes them.
    pub orders: fn(names: &mut [LockName]),
    /// Whether a call gives back what it holds, by whether it got all that it asked for.
    pub gives_back: fn(has_all: bool) -> bool,
    /// In which process a new runtime may be used.
    pub origin: fn() -> Origin,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            push_counts_from: |sent_at, _| sent_at,
            is_news: |first, begun| begun.is_none_or(|begun| first > begun),
            needs_acks: Replication::are_asked,
            next_id: |fresh, _| fresh,
            may_take: |offered_to, own| offered_to == own,
            offer_ends: |offered_at, claim_window| offered_at + claim_window / 2,
            is_believed: |now, until| now < until,
            ends_turn: |rest| rest.is_some(),
            attended_from: |_, polled_at| polled_at,
            place_deadline: |heartbeat, command| heartbeat.min(command),
            keeps: |is_worth_it| is_worth_it,
            renews: |is_held| is_held,
            orders: <[LockName]>::sort_unstable,
            gives_back: |has_all| !has_all,
            origin: Origin::here,
        }
    }
}
