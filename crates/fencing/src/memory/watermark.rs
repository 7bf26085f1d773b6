use std::{
    collections::BTreeMap,
    mem,
    sync::{
        Mutex, MutexGuard, PoisonError, TryLockError,
        atomic::{AtomicBool, Ordering},
    },
};

use leasehold_core::Stamp;
use tokio::sync::oneshot;

use crate::{error::StaleFence, rule::Admitted};

/// The verdict of the rule on a stamp.
pub(super) type Judged = Result<Admitted, StaleFence>;

/// Compares a stamp with the highest, and raises the highest if the stamp is admitted.
pub(super) trait Rule: Fn(&mut Option<Stamp>, Stamp) -> Judged + Copy {}
impl<R: Fn(&mut Option<Stamp>, Stamp) -> Judged + Copy> Rule for R {}

/// The watermark of one resource. A running write holds it, and admissions wait for it.
#[derive(Debug, Default)]
pub(super) struct Watermark {
    highest: Mutex<Option<Stamp>>,
    waiting: Mutex<Waiting>,
    /// Whether `waiting` has admissions; changed only under the mutex of `waiting`.
    some_wait: AtomicBool,
}

/// The admissions that wait, in the order in which they came.
#[derive(Debug, Default)]
struct Waiting {
    admissions: BTreeMap<u64, (Stamp, oneshot::Sender<Judged>)>,
    next: u64,
}

impl Watermark {
    /// Holds the watermark; blocks the thread until the watermark is free.
    pub(super) fn hold<R: Rule>(&self, rule: R) -> Held<'_, R> {
        Held { watermark: self, highest: Some(lock(&self.highest)), rule }
    }

    /// Judges a stamp when no write runs.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws the stamp, unless it was judged already.
    pub(super) async fn admit(&self, presented: Stamp, rule: impl Rule) -> Judged {
        loop {
            if let Some(mut held) = self.try_hold(rule) {
                return held.judge(presented);
            }
            let (place, told) = self.wait(presented);
            // The write may have ended before this admission was in the queue: then this call
            // judges the queue.
            drop(self.try_hold(rule));
            let judged = told.await;
            drop(place);
            // Every waiting admission gets a verdict, unless a log subscriber panicked; then it
            // asks again.
            if let Ok(judged) = judged {
                return judged;
            }
        }
    }

    fn try_hold<R: Rule>(&self, rule: R) -> Option<Held<'_, R>> {
        let highest = Some(try_lock(&self.highest)?);
        Some(Held { watermark: self, highest, rule })
    }

    fn wait(&self, presented: Stamp) -> (Place<'_>, oneshot::Receiver<Judged>) {
        let (tell, told) = oneshot::channel();
        let mut waiting = lock(&self.waiting);
        let number = waiting.next;
        waiting.next += 1;
        waiting.admissions.insert(number, (presented, tell));
        // A swap, not a store: either the `fetch_or` of a later `drop` sees the flag, or this swap
        // sees all that an earlier `drop` did, so that the watermark is free.
        self.some_wait.swap(true, Ordering::AcqRel);
        (Place { watermark: self, number }, told)
    }
}

/// A watermark that is held. Dropping it, even in a panic, judges the waiting admissions.
pub(super) struct Held<'a, R: Rule> {
    watermark: &'a Watermark,
    /// `None` only after it was released.
    highest: Option<MutexGuard<'a, Option<Stamp>>>,
    rule: R,
}

impl<R: Rule> Held<'_, R> {
    /// Judges a stamp.
    pub(super) fn judge(&mut self, presented: Stamp) -> Judged {
        match &mut self.highest {
            Some(highest) => (self.rule)(highest, presented),
            None => (self.rule)(&mut None, presented),
        }
    }

    /// Judges the waiting admissions. Their own futures cannot do that: their executor may run on
    /// the thread that waits for the next write, and among writes without a pause they would never
    /// find the watermark free.
    fn judge_waiting(&mut self) {
        let mut waiting = lock(&self.watermark.waiting);
        let admissions = mem::take(&mut waiting.admissions);
        self.watermark.some_wait.store(false, Ordering::Relaxed);
        drop(waiting);
        for (presented, tell) in admissions.into_values() {
            // If its future was dropped meanwhile, it may be admitted all the same, as the
            // documentation of `admit` says.
            let _ = tell.send(self.judge(presented));
        }
    }
}

impl<R: Rule> Drop for Held<'_, R> {
    fn drop(&mut self) {
        loop {
            if self.watermark.some_wait.load(Ordering::Relaxed) {
                self.judge_waiting();
            }
            drop(self.highest.take());
            // A `fetch_or`, not a load, for the same reason as in `wait`: an admission that came
            // meanwhile may have found the watermark held.
            if !self.watermark.some_wait.fetch_or(false, Ordering::AcqRel) {
                return;
            }
            // If another holds the watermark now, its `drop` judges the queue.
            let Some(highest) = try_lock(&self.watermark.highest) else { return };
            self.highest = Some(highest);
        }
    }
}

/// The place of a waiting admission; dropping it withdraws the admission.
struct Place<'a> {
    watermark: &'a Watermark,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        lock(&self.watermark.waiting).admissions.remove(&self.number);
    }
}

/// Ignores poison: if a caller's write panics, the watermark is consistent, because it moved
/// before the write.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

fn try_lock<T>(mutex: &Mutex<T>) -> Option<MutexGuard<'_, T>> {
    match mutex.try_lock() {
        Ok(guard) => Some(guard),
        Err(TryLockError::Poisoned(poisoned)) => Some(poisoned.into_inner()),
        Err(TryLockError::WouldBlock) => None,
    }
}
