use std::{
    fmt,
    future::Future,
    mem,
    pin::Pin,
    sync::{Arc, MutexGuard},
    task::{Context, Poll, ready},
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, Clock, Fence, Instant, LockName, Mutex, StoreError, Ttl,
    lease::{Expiry, Grant, LeaseEnd, LeaseRules, LeaseState, LossReason},
    metric::{ClassMetrics, HoldEnd},
    outage::OutageWatch,
};
use tokio::select;
use tokio_util::sync::CancellationToken;

use crate::plan::Renewing;

/// What a task takes over: one token of a turn, with the options of its lease.
#[derive(Debug, Clone)]
pub struct Share {
    /// The turn's grant.
    pub turn: Arc<Grant>,
    /// The number of the lease's id, never used for another; the runtime is that of the turn.
    pub number: u64,
    /// The token of the lease, one of the grant's.
    pub fence: Fence,
    /// Until when the turn may be believed in.
    pub until: Instant,
    /// Whether the turn is renewed for this lease.
    pub renewing: Renewing,
    /// The lease ends this long after it was taken, released or not.
    pub max_hold: Option<Duration>,
    /// The lock stays closed for at least this long after the lease was taken, however it ends.
    pub min_hold: Option<Duration>,
}

/// One lease as its holder knows it: until when it is believed, and the signal of its end.
///
/// Every method reads the clock first: after a pause of the process, a lost lease shows as lost.
/// Lost never turns back into held. In a fork of its process it shows as lost as well, and nothing
/// of it is touched: another thread may have had its mutex.
pub struct HeldLease {
    turn: Arc<Grant>,
    number: u64,
    fence: Fence,
    since: Instant,
    outages: Arc<OutageWatch>,
    metrics: Arc<ClassMetrics>,
    life: Mutex<Life>,
}

struct Life {
    rules: LeaseRules,
    /// Until when the lock stays closed, however the lease ends.
    closed_until: Option<Instant>,
    /// Cancelled when the lease is over; made on demand.
    ended: Option<CancellationToken>,
    on_end: Option<OnEnd>,
    /// Why a renewal failed, and until when the lease was believed then: a later renewal moves that.
    failure: Option<(Instant, StoreError)>,
}

/// What hears how a lease ended, and why it was lost, if it was.
type OnEnd = Box<dyn FnOnce(HoldEnd, Option<LossReason>) + Send>;

impl HeldLease {
    /// Takes over a share of a turn; call [`count`](Self::count) outside of every lock.
    pub fn new(
        share: Share,
        since: Instant,
        outages: &Arc<OutageWatch>,
        metrics: Arc<ClassMetrics>,
    ) -> Arc<Self> {
        let Share { turn, number, fence, until, renewing, max_hold, min_hold } = share;
        let rules = LeaseRules::new(until, max_hold.map(|hold| since + hold));
        let rules = match renewing {
            Renewing::Always => rules,
            Renewing::Once | Renewing::Never => rules.fixed(renewing == Renewing::Once),
        };
        let closed_until = min_hold.map(|hold| since + hold);
        let life =
            Mutex::new(Life { rules, closed_until, ended: None, on_end: None, failure: None });
        let outages = Arc::clone(outages);
        Arc::new(Self { turn, number, fence, since, outages, metrics, life })
    }

    /// Whether this process is a fork of the one that has the lease.
    pub fn is_forked(&self) -> bool {
        !self.outages.origin().is_here(self.clock().now())
    }

    /// Counts the lease as held.
    pub fn count(&self) {
        self.metrics.holds.began(self.since);
    }

    /// The lock that is held.
    pub fn name(&self) -> &LockName {
        self.turn.name()
    }

    /// The id of the lease, never used for another.
    pub fn id(&self) -> AcquisitionId {
        AcquisitionId::new(self.turn.id().runtime(), self.number)
    }

    /// The turn's grant, by which commands name the lease.
    pub fn turn(&self) -> &Arc<Grant> {
        &self.turn
    }

    /// Keeps the lock closed until `at` at least, however the lease ends or has ended.
    pub fn close_until(&self, at: Instant) {
        if let Some(mut life) = self.life() {
            life.closed_until = life.closed_until.max(Some(at));
        }
    }

    /// As [`close_until`](Self::close_until), if the lease is held. Returns the state of the lease.
    pub fn close_if_held(&self, at: Instant) -> LeaseState {
        if let lost @ LeaseState::Lost(_) = self.state() {
            return lost;
        }
        let mut life = self.life.lock();
        // Under one lock: the end of the lease, which comes later, finds the new time.
        let state = life.rules.present();
        if state.is_held() {
            life.closed_until = life.closed_until.max(Some(at));
        }
        state
    }

    /// Until when the lock stays closed if the lease ends before; `None` if no holder asked for it.
    pub fn closed_until(&self) -> Option<Instant> {
        self.life()?.closed_until
    }

    /// The fence token of the lease.
    pub fn fence(&self) -> Fence {
        self.fence
    }

    /// The ttl to which renewals extend it.
    pub fn ttl(&self) -> Ttl {
        self.turn.ttl()
    }

    /// When the holder took the lease over.
    pub fn since(&self) -> Instant {
        self.since
    }

    /// The clock that the lease is measured on.
    pub fn clock(&self) -> &Arc<dyn Clock> {
        self.outages.clock()
    }

    /// The series of the lock's class.
    pub fn metrics(&self) -> &Arc<ClassMetrics> {
        &self.metrics
    }

    /// What the holder may believe now.
    pub fn state(&self) -> LeaseState {
        self.state_at(self.clock().now())
    }

    /// Whether the holder may believe that it has the lease now.
    pub fn is_held(&self) -> bool {
        self.state().is_held()
    }

    /// What the holder may believe at `now`, which is the present.
    pub(crate) fn state_at(&self, now: Instant) -> LeaseState {
        self.change(now, |rules| rules.observe(now))
    }

    /// For how long the lease may be believed without a renewal; zero when it is over.
    pub fn remaining(&self) -> Duration {
        match self.state() {
            LeaseState::Held { until } => until.saturating_since(self.clock().now()),
            LeaseState::Lost(_) | LeaseState::Released => Duration::ZERO,
        }
    }

    /// A renewal or hold that was sent at `sent_at` was answered with `remaining`.
    pub fn extended(&self, sent_at: Instant, remaining: Duration) -> LeaseState {
        let now = self.clock().now();
        self.change(now, |rules| rules.extended(now, sent_at, remaining))
    }

    /// A renewal was confirmed at `now`. Returns whether the lease is still held.
    pub(crate) fn renewed(&self, now: Instant, sent_at: Instant, remaining: Duration) -> bool {
        let mut belief = now;
        let state = self.change(now, |rules| {
            belief = rules.belief();
            rules.extended(now, sent_at, remaining)
        });
        // A grant that was pushed is believed for a claim window only, until its first renewal.
        // Little is left of it then, which is no sign of a slow server.
        let had_a_ttl = belief.saturating_since(self.since) >= self.ttl().get() / 2;
        if state.is_held() && had_a_ttl {
            // The margin is what was left of the belief that this answer extends.
            self.metrics.renewal_margin(belief.saturating_since(now), self.ttl());
        }
        state.is_held()
    }

    /// A renewal was not confirmed, for this reason.
    pub(crate) fn not_renewed(&self, why: StoreError) {
        if let Some(mut life) = self.life() {
            life.failure = Some((life.rules.belief(), why.for_no_lock()));
        }
    }

    /// Why the last renewal was not confirmed, if it was not.
    pub fn renewal_error(&self) -> Option<StoreError> {
        let life = self.life()?;
        let (belief, why) = life.failure.as_ref()?;
        (*belief == life.rules.belief()).then(|| why.clone())
    }

    /// The lease is lost for `reason`, unless it had ended before.
    pub fn lose(&self, reason: LossReason) -> LeaseState {
        let now = self.clock().now();
        self.change(now, |rules| rules.lose(now, reason))
    }

    /// Releases the lease in memory at `now`; call [`ReleasedLease::notify`] outside of every lock.
    pub fn release(self: &Arc<Self>, now: Instant) -> ReleasedLease {
        let mut released = ReleasedLease {
            state: LeaseState::Lost(LossReason::Forked),
            belief: now,
            closed_until: None,
            lease: Arc::clone(self),
            has_ended: false,
            at: now,
        };
        if self.outages.origin().is_here(now) {
            let mut life = self.life.lock();
            released.has_ended = life.rules.present().is_held();
            released.state = life.rules.release(now);
            released.belief = life.rules.belief();
            released.closed_until = life.closed_until;
        }
        released
    }

    /// A token that is cancelled when the lease is over.
    // ADR 0020
    pub fn cancellation(&self) -> CancellationToken {
        let token = self.life().map(|mut life| life.ended.get_or_insert_default().clone());
        let token = token.unwrap_or_default();
        // The lease may have ended before there was a token to cancel.
        if !self.is_held() {
            token.cancel();
        }
        token
    }

    /// A future that resolves when the lease is over.
    // ADR 0009
    pub fn lost(self: &Arc<Self>) -> Lost {
        Lost { lease: Arc::clone(self), news: None, is_over: false }
    }

    /// Tells `hear` once how the lease ended, and why it was lost, if it was: where its end is counted, and in a fork
    /// never. As [`count`](Self::count), this is called outside of every lock, and once.
    pub fn on_end(&self, hear: impl FnOnce(HoldEnd, Option<LossReason>) + Send + 'static) {
        let Some(mut life) = self.life() else { return };
        // Under one lock: the end of the lease, which comes later, finds it.
        let (end, lost) = match life.rules.present() {
            LeaseState::Held { .. } => {
                life.on_end = Some(Box::new(hear));
                return;
            }
            LeaseState::Lost(reason) => (HoldEnd::Lost, Some(reason)),
            LeaseState::Released => (HoldEnd::Released, None),
        };
        drop(life);
        hear(end, lost);
    }

    /// Why it expired, if that is known.
    pub fn expiry(&self) -> Option<Expiry> {
        self.life().and_then(|life| life.rules.expiry())
    }

    /// The state as it was last seen.
    fn present(&self) -> LeaseState {
        self.life().map_or(LeaseState::Lost(LossReason::Forked), |life| life.rules.present())
    }

    /// The part of it that changes; `None` in a fork.
    fn life(&self) -> Option<MutexGuard<'_, Life>> {
        (!self.is_forked()).then(|| self.life.lock())
    }

    /// When the lease ends if nothing happens; long past when it is over.
    pub(crate) fn deadline(&self) -> Instant {
        self.life.lock().rules.deadline().unwrap_or_default()
    }

    /// Until when the turn is believed, whatever `max_hold` says.
    pub(crate) fn believed_until(&self) -> Instant {
        self.life.lock().rules.belief()
    }

    /// Applies a rule, which returns the state after it.
    fn change(&self, now: Instant, rule: impl FnOnce(&mut LeaseRules) -> LeaseState) -> LeaseState {
        if !self.outages.origin().is_here(now) {
            return LeaseState::Lost(LossReason::Forked);
        }
        let (before, state) = {
            let mut life = self.life.lock();
            (life.rules.present(), rule(&mut life.rules))
        };
        if let (LeaseState::Held { .. }, LeaseState::Lost(reason)) = (before, state) {
            self.notify_loss(now, reason);
        }
        state
    }

    fn notify_loss(&self, now: Instant, reason: LossReason) {
        let held_for = now.saturating_since(self.since);
        self.metrics.holds.ended(self.since);
        self.metrics.lost(reason);
        self.metrics.hold(HoldEnd::Lost, held_for);
        let why = (reason, self.expiry());
        self.outages.lost(now, self.name(), (self.id(), self.fence), held_for, why);
        self.tell_of_end(HoldEnd::Lost, Some(reason));
    }

    fn tell_of_end(&self, end: HoldEnd, lost: Option<LossReason>) {
        let (token, hear) = {
            let mut life = self.life.lock();
            (life.ended.clone(), life.on_end.take())
        };
        // Outside of the lock: it wakes tasks.
        token.iter().for_each(CancellationToken::cancel);
        if let Some(hear) = hear {
            hear(end, lost);
        }
    }
}

/// A lease that was released in memory, before those who wait for its end are woken.
#[derive(Debug)]
#[must_use = "those who wait for the end of the lease have to be woken"]
pub struct ReleasedLease {
    /// The state of the lease when it was released.
    pub state: LeaseState,
    /// Until when the next lease of the turn may be believed.
    pub belief: Instant,
    /// Until when the lock stays closed.
    pub closed_until: Option<Instant>,
    lease: Arc<HeldLease>,
    /// Whether it had not ended before.
    has_ended: bool,
    at: Instant,
}

impl ReleasedLease {
    /// Wakes those who wait for the end of the lease, and counts it.
    pub fn notify(self, end: HoldEnd) {
        let Self { lease, state, has_ended, at, .. } = self;
        match state {
            _ if !has_ended => {}
            LeaseState::Lost(reason) => lease.notify_loss(at, reason),
            LeaseState::Held { .. } | LeaseState::Released => {
                lease.metrics.holds.ended(lease.since);
                lease.metrics.hold(end, at.saturating_since(lease.since));
                lease.tell_of_end(end, None);
            }
        }
    }
}

impl fmt::Debug for HeldLease {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HeldLease")
            .field("name", self.name())
            .field("id", &self.id())
            .field("fence", &self.fence())
            .field("state", &self.present())
            .finish_non_exhaustive()
    }
}

/// A future that resolves when a lease is over; it borrows nothing.
///
/// It resolves once, and is pending for ever after that: a loop around `select!` may poll it on. It also
/// watches the deadline of the lease by itself. Every poll reads the clock, because a timer
/// may come late after a pause of the process.
///
/// # Cancel safety
///
/// Dropping it forgets the watch and nothing else.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::{LeaseEnd, LockRuntime, LossReason};
///
/// let locks = LockRuntime::embedded()?;
/// let guard = locks.lock("orders/42")?.acquire().await?;
/// let lost = guard.lost(); // borrows nothing: a task of its own may await it
///
/// locks.force_release("orders/42").await?; // as an operator may do
/// assert_eq!(lost.await, LeaseEnd::Lost(LossReason::ForceReleased));
/// # Ok(())
/// # }
/// ```
#[must_use = "a future does nothing unless it is polled"]
pub struct Lost {
    lease: Arc<HeldLease>,
    /// Resolves when the lease may be over.
    news: Option<Pin<Box<dyn Future<Output = ()> + Send>>>,
    is_over: bool,
}

/// Resolves at the end of a lease, and at its present deadline.
async fn end_or_deadline(lease: Arc<HeldLease>, deadline: Instant) {
    let token = lease.cancellation();
    select! {
        biased;
        () = token.cancelled() => {}
        () = lease.clock().sleep_until(deadline) => {}
    }
}

// A future of its own: every poll reads the clock, and in a fork the timer is not touched.
impl Future for Lost {
    type Output = LeaseEnd;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        // In a loop around `select!`, it is told once.
        if self.is_over {
            return Poll::Pending;
        }
        loop {
            let until = match self.lease.state() {
                LeaseState::Held { until } => until,
                LeaseState::Lost(reason) => return Poll::Ready(self.end(LeaseEnd::Lost(reason))),
                LeaseState::Released => return Poll::Ready(self.end(LeaseEnd::Released)),
            };
            let lease = Arc::clone(&self.lease);
            let news = self.news.get_or_insert_with(|| Box::pin(end_or_deadline(lease, until)));
            ready!(news.as_mut().poll(cx));
            self.news = None;
        }
    }
}

impl Lost {
    fn end(&mut self, end: LeaseEnd) -> LeaseEnd {
        self.is_over = true;
        self.forget_news();
        end
    }

    fn forget_news(&mut self) {
        let news = self.news.take();
        // Its timer may belong to a thread that does not exist in a fork.
        if news.is_some() && self.lease.is_forked() {
            mem::forget(news);
        }
    }
}

impl Drop for Lost {
    fn drop(&mut self) {
        self.forget_news();
    }
}

impl fmt::Debug for Lost {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Lost")
    }
}
