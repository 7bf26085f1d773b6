use std::{
    collections::BTreeMap,
    ops::Deref,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_core::{AcquisitionId, Clock, Instant, Mutex, store::Acquire, within};
use tokio::sync::{Mutex as AsyncMutex, MutexGuard as AsyncMutexGuard, Notify};

/// An acquisition that asks the nodes for a lease.
#[derive(Debug, Clone)]
pub(super) struct Candidate {
    pub(super) command: Acquire,
    /// How long the lease is to live.
    pub(super) life: Duration,
}

impl Candidate {
    /// For how long nodes remember that it waits; zero if it does not.
    pub(super) fn heard(&self) -> Duration {
        let Acquire { wait, ttl, .. } = self.command;
        wait.map_or(Duration::ZERO, |heartbeat| heartbeat.window(ttl))
    }

    pub(super) fn waits(&self) -> bool {
        self.command.wait.is_some()
    }

    /// The number of its heartbeat. A grant is believed from when that was sent.
    pub(super) fn heartbeat(&self) -> u64 {
        self.command.wait.map_or(0, |heartbeat| heartbeat.number)
    }
}

/// What the calls of this process for one acquisition share.
#[derive(Debug, Default)]
pub(super) struct Claim {
    /// Held by the call that tries: two tries at once would take nodes from each other.
    turn: AsyncMutex<()>,
    /// A node has said that it is the acquisition's turn.
    called: Notify,
    /// Whether the acquisition is released or withdrawn: no call may get it any more.
    is_over: AtomicBool,
    /// What it waits with, and until when, unless another heartbeat comes.
    waiting: Mutex<Option<(Candidate, Instant)>>,
    /// When the nodes were asked first.
    since: OnceLock<Instant>,
}

impl Claim {
    /// How long after the first time the nodes are asked now; zero for the first.
    // ADR 0039
    pub(super) fn asked_for(&self, now: Instant) -> Duration {
        now.saturating_since(*self.since.get_or_init(|| now))
    }

    /// Waits until no other call tries; `None` if one still tries at the deadline.
    pub(super) async fn turn(
        &self,
        clock: &dyn Clock,
        deadline: Instant,
    ) -> Option<AsyncMutexGuard<'_, ()>> {
        match self.turn.try_lock() {
            Ok(turn) => Some(turn),
            Err(_) => within(clock, deadline, self.turn.lock()).await,
        }
    }

    /// Waits for a message of a node, until an instant; returns whether one came, also before the call.
    pub(super) async fn called(&self, clock: &dyn Clock, until: Instant) -> bool {
        within(clock, until, self.called.notified()).await.is_some()
    }

    pub(super) fn is_over(&self) -> bool {
        self.is_over.load(Ordering::Acquire)
    }

    /// Remembers that it waits; returns whether that is new.
    pub(super) fn wait(&self, candidate: Candidate, until: Instant) -> bool {
        let mut waiting = self.waiting.lock();
        let Some((known, known_until)) = waiting.as_mut() else {
            *waiting = Some((candidate, until)).filter(|_| !self.is_over());
            return waiting.is_some();
        };
        *known_until = until;
        // A later sign of life that has seen less takes nothing back.
        let watermark = known.command.watermark.max(candidate.command.watermark);
        // The answer to an earlier heartbeat may come late.
        if known.heartbeat() <= candidate.heartbeat() {
            *known = candidate;
        }
        known.command.watermark = watermark;
        false
    }

    /// What it waits with, and until when.
    pub(super) fn waiting(&self) -> Option<(Candidate, Instant)> {
        self.waiting.lock().clone()
    }

    /// It does not wait any more if its time is over; another heartbeat may have come.
    pub(super) fn stop_waiting_after(&self, now: Instant) {
        self.waiting.lock().take_if(|(_, until)| *until <= now);
    }

    /// It does not wait any more.
    pub(super) fn stop_waiting(&self) {
        if self.waiting.lock().take().is_some() {
            self.called.notify_one();
        }
    }
}

/// The acquisitions that are asked for at present, or wait, each with the number of calls that use it.
type ClaimTable = Arc<Mutex<BTreeMap<AcquisitionId, (usize, Arc<Claim>)>>>;

/// The claims of a process.
#[derive(Debug, Default)]
pub(super) struct Claims(ClaimTable);

impl Claims {
    /// Counts one more call for an acquisition.
    pub(super) fn enter(&self, id: AcquisitionId) -> ClaimGuard {
        let mut all = self.0.lock();
        let (calls, claim) = all.entry(id).or_default();
        *calls += 1;
        ClaimGuard { all: Arc::clone(&self.0), id, claim: Arc::clone(claim) }
    }

    /// A node has said that it is the acquisition's turn.
    pub(super) fn call(&self, id: AcquisitionId) {
        if let Some((_, claim)) = self.0.lock().get(&id) {
            claim.called.notify_one();
        }
    }

    /// The acquisition is released or withdrawn: no call that still asks for it may get it.
    pub(super) fn end(&self, id: AcquisitionId) {
        if let Some((_, claim)) = self.0.lock().get(&id) {
            claim.is_over.store(true, Ordering::Release);
            claim.stop_waiting();
        }
    }
}

/// A call for an acquisition that is counted.
#[must_use = "dropped, the call is over"]
pub(super) struct ClaimGuard {
    all: ClaimTable,
    id: AcquisitionId,
    claim: Arc<Claim>,
}

impl Deref for ClaimGuard {
    type Target = Claim;

    fn deref(&self) -> &Claim {
        &self.claim
    }
}

impl Drop for ClaimGuard {
    fn drop(&mut self) {
        let mut all = self.all.lock();
        if let Some((calls, _)) = all.get_mut(&self.id) {
            *calls -= 1;
            if *calls == 0 {
                all.remove(&self.id);
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use futures_util::FutureExt;
    use uuid::Uuid;

    use super::*;
    use leasehold_core::{
        Fence, LockName, Mode, Replication, RuntimeId, RuntimeLabel, SystemClock, Ttl,
        store::Heartbeat,
    };

    fn id() -> AcquisitionId {
        AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), 1)
    }

    fn candidate(number: u64, watermark: u64) -> Candidate {
        let heartbeat = Heartbeat { number, claim_window: Duration::from_secs(1) };
        let command = Acquire {
            name: LockName::new("a").unwrap(),
            id: id(),
            mode: Mode::Write,
            ttl: Ttl::default(),
            watermark: Fence::try_from(watermark).ok(),
            label: RuntimeLabel::new("label"),
            keeps: false,
            wait: Some(heartbeat),
            acks: Replication::NONE,
        };
        Candidate { command, life: heartbeat.claim_window }
    }

    fn was_called(claim: &Claim) -> bool {
        claim.called(&SystemClock, Instant::default()).now_or_never() == Some(true)
    }

    #[test]
    fn a_message_counts_that_comes_while_a_call_still_asks_and_is_forgotten_with_it() {
        let claims = Claims::default();
        let call = claims.enter(id());
        assert!(!was_called(&call));
        claims.call(id());
        let other = claims.enter(id());
        drop(call);
        assert!(was_called(&other) && !was_called(&other));
        claims.call(id());
        drop(other);
        assert!(!was_called(&claims.enter(id())));
    }

    #[test]
    fn the_answer_to_an_earlier_heartbeat_leaves_the_later_one() {
        let (claim, until) = (Claim::default(), Instant::default());
        assert!(claim.wait(candidate(2, 1), until));
        assert!(!claim.wait(candidate(1, 3), until));
        let known = claim.waiting().map(|(known, _)| (known.heartbeat(), known.command.watermark));
        assert_eq!(known, Some((2, Fence::try_from(3_u64).ok())));
        claim.stop_waiting();
        assert!(claim.waiting().is_none() && was_called(&claim), "who waits for a call is woken");
    }

    #[test]
    fn an_acquisition_that_was_ended_does_not_wait() {
        let claims = Claims::default();
        let call = claims.enter(id());
        claims.end(id());
        assert!(call.is_over());
        assert!(!call.wait(candidate(1, 0), Instant::default()) && call.waiting().is_none());
        drop(call);
        assert!(!claims.enter(id()).is_over(), "nothing of it is left");
    }
}
