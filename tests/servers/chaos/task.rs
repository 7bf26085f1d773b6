use std::{cell::Cell, rc::Rc, time::Duration};

use leasehold::{
    Guard, ReentrantLock,
    error::AcquireError,
    time::{Clock, SystemClock},
};
use leasehold_core::Entropy;
use leasehold_testkit::{Event, SeededEntropy, history::Worker};
use tokio::time::{sleep, timeout};

use super::{tally::Counting, values::Values};
use crate::support::events;

/// What the tasks of a process share.
#[derive(Debug)]
pub(crate) struct Terms {
    /// The locks, the most wanted first.
    pub(crate) names: Vec<ReentrantLock>,
    pub(crate) ttl: Duration,
    pub(crate) told: bool,
    pub(crate) dice: SeededEntropy,
    pub(crate) counting: Counting,
    pub(crate) enough: Cell<bool>,
}

impl Terms {
    /// Draws a lock; the n-th is drawn with a weight of 1/n (Zipf's law).
    #[expect(
        clippy::cast_precision_loss,
        clippy::cast_possible_truncation,
        clippy::cast_sign_loss,
        reason = "there are few locks"
    )]
    fn draw(&self) -> ReentrantLock {
        let last = self.names.len() as f64;
        let rank = (last + 1.0).powf(self.dice.fraction()) - 1.0;
        self.names[(rank as usize).min(self.names.len() - 1)].clone()
    }

    fn chance(&self, of: f64) -> bool {
        self.dice.fraction() < of
    }
}

/// A task that increments numbers under their locks, in all the ways in which a service would.
#[derive(Debug)]
pub(crate) struct Task {
    worker: Worker,
    terms: Rc<Terms>,
    values: Values,
}

impl Task {
    pub(crate) fn new(worker: Worker, terms: Rc<Terms>, values: Values) -> Self {
        Self { worker, terms, values }
    }

    pub(crate) async fn run(mut self) {
        while !self.terms.enough.get() {
            let lock = self.terms.draw();
            let name = lock.name().to_string();
            let (worker, asked_at) = (self.worker, SystemClock.now());
            self.tell(&name, || Event::Asked { worker, at: asked_at });
            if let Some(guard) = self.acquire(&lock).await {
                self.terms.counting.count("acquired");
                let (fence, lease, granted_at) = (guard.fence(), guard.id(), SystemClock.now());
                self.tell(&name, || Event::Granted { worker, fence, lease, asked_at, granted_at });
                self.hold(&name, guard).await;
            } else {
                self.tell(&name, || Event::GaveUp { worker, at: SystemClock.now() });
                sleep(self.terms.ttl.mul_f64(self.terms.dice.fraction() / 20.0)).await;
            }
        }
    }

    /// Asks for a lock, and waits for as long as it likes to.
    async fn acquire(&self, lock: &ReentrantLock) -> Option<Guard> {
        let terms = &self.terms;
        let patience = terms.ttl.mul_f64(3.0 * terms.dice.fraction());
        let outcome = if terms.chance(0.1) {
            // A service that drops the future.
            let Ok(outcome) = timeout(patience, lock.acquire().wait_forever()).await else {
                terms.counting.count("cancelled");
                return None;
            };
            outcome
        } else {
            lock.acquire().wait(patience).await
        };
        let what = match outcome {
            Ok(guard) => return Some(guard),
            Err(AcquireError::Timeout { .. }) => "timeouts",
            Err(AcquireError::Unavailable { .. }) => "outages",
            Err(_) => "errors",
        };
        terms.counting.count(what);
        None
    }

    async fn hold(&mut self, name: &str, guard: Guard) {
        let lease = guard.id();
        self.tell_belief(name, &guard);
        self.increment(name, &guard).await;
        let inner = if self.terms.chance(0.05) { guard.reenter().await.ok() } else { None };
        let at = SystemClock.now();
        let is_lost = !guard.is_held();
        let given_back = if self.terms.chance(0.2) {
            drop((inner, guard));
            !is_lost
        } else {
            drop(inner);
            guard.release().await.is_ok()
        };
        self.terms.counting.count(if given_back { "released" } else { "lost" });
        self.tell(name, || {
            if given_back {
                Event::Released { lease, at }
            } else {
                Event::Lost { lease, at: SystemClock.now() }
            }
        });
    }

    async fn increment(&mut self, name: &str, guard: &Guard) {
        let stamp = guard.stamp();
        let Some(read) = self.values.read(name, stamp).await else {
            self.terms.counting.count("shut-out");
            return;
        };
        // Most sections are short; some are longer than their lease has without renewal.
        let length = if self.terms.chance(0.02) { 2_000.0 } else { 2.0 };
        sleep(self.terms.ttl.mul_f64(length * self.terms.dice.fraction() / 1_000.0)).await;
        self.tell_belief(name, guard);
        let (worker, at) = (self.worker, SystemClock.now());
        let order = self.values.write(name, read + 1, stamp).await;
        self.terms.counting.count(if order.is_some() { "accepted" } else { "refused" });
        let (fence, lease, accepted) = (stamp.fence, stamp.lease, order.is_some());
        let order = order.unwrap_or_default();
        self.tell(name, || Event::Wrote { fence, lease, at, order, accepted });
        if accepted {
            self.tell(name, || Event::Incremented { worker });
        }
    }

    /// Tells until when the holder believes, if it still does.
    fn tell_belief(&self, name: &str, guard: &Guard) {
        let (now, left) = (SystemClock.now(), guard.remaining());
        if !left.is_zero() {
            self.tell(name, || Event::BelievedUntil { lease: guard.id(), until: now + left });
        }
    }

    fn tell(&self, name: &str, event: impl FnOnce() -> Event) {
        if self.terms.told {
            events::tell_of(name, event());
        }
    }
}
