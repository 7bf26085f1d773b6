//! The decisions of turns, for tests that replace one of them by a wrong one.

use std::time::Duration;

use leasehold_core::{AcquisitionId, FenceToken, Instant};

/// Decisions as plain functions; the real ones by default.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// From when on a pushed grant counts.
    pub push_counts_from: fn(&PushTimes) -> Instant,
    /// From when on the grant in an answer counts.
    pub answer_counts_from: fn(sent_at: Instant, arrived_at: Instant) -> Instant,
    /// Whether a grant is new, by its first token and that of the last turn begun.
    pub is_news: fn(first: FenceToken, begun: Option<FenceToken>) -> bool,
    /// The id with which a runtime queues anew, by a fresh one and that of its turn.
    pub next_id: fn(fresh: AcquisitionId, old: AcquisitionId) -> AcquisitionId,
    /// Whether a task may take a token, by the tickets of the one it is offered to and its own.
    pub may_take: fn(offered_to: Option<u64>, own: u64) -> bool,
    /// Whether a stale offer is taken back, rather than passed over.
    pub takes_back: fn() -> bool,
    /// Whether a token may be offered, by whether the release of its turn was sent.
    pub may_offer: fn(release_sent: bool) -> bool,
    /// Whether an acquisition is dead once its withdrawal was asked for.
    pub dies_withdrawn: fn() -> bool,
    /// Whether a turn may be believed in.
    pub is_believed: fn(now: Instant, until: Instant) -> bool,
    /// Whether an acquisition keeps its place when a grant that was pushed to it is gone.
    pub outlives_gone_push: fn() -> bool,
    /// Whether a turn ends with a lease whose lock is to stay closed for a rest of time.
    pub ends_turn: fn(rest: Option<Duration>) -> bool,
    /// Whether a task whose own command is under way looks at what it is handed meanwhile.
    pub lead_listens: fn() -> bool,
    /// From when on a first command counts as left alone, by when it was sent and when its task was
    /// polled last.
    pub attended_from: fn(sent_at: Instant, polled_at: Instant) -> Instant,
    /// How long a command may take that carries a place, by the time of a heartbeat and that of any
    /// other command.
    pub place_deadline: fn(heartbeat: Duration, command: Duration) -> Duration,
    /// Whether a heartbeat is sent, by whether an answer about its place is awaited.
    pub beats_on: fn(awaited: bool) -> bool,
    /// Whether a turn remembers the commands that were not answered when it began.
    pub remembers_unanswered: fn() -> bool,
    /// The decisions of the watchdog.
    pub watchdog: leasehold_watchdog::seam::Rules,
}

/// What is known of the time of a pushed grant.
#[derive(Debug, Clone, Copy)]
pub struct PushTimes {
    /// When the heartbeat was sent that the grant names.
    pub heartbeat_sent_at: Instant,
    /// When the last heartbeat was sent that was answered "not yet".
    pub answered_sent_at: Instant,
    /// When the message arrived.
    pub arrived_at: Instant,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            push_counts_from: |times| times.heartbeat_sent_at,
            answer_counts_from: |sent_at, _| sent_at,
            is_news: |first, begun| begun.is_none_or(|begun| first > begun),
            next_id: |fresh, _| fresh,
            may_take: |offered_to, own| offered_to == Some(own),
            takes_back: || true,
            may_offer: |release_sent| !release_sent,
            dies_withdrawn: || true,
            is_believed: |now, until| now < until,
            outlives_gone_push: || true,
            ends_turn: |rest| rest.is_some(),
            lead_listens: || true,
            attended_from: |_, polled_at| polled_at,
            place_deadline: |heartbeat, command| heartbeat.min(command),
            beats_on: |_| true,
            remembers_unanswered: || true,
            watchdog: leasehold_watchdog::seam::Rules::default(),
        }
    }
}
