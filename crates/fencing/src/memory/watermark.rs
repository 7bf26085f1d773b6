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

/// What the rule says of a stamp.
pub(super) type Judged = Result<Admitted, StaleFence>;

/// Judges a stamp by the highest, and moves that on.
pub(super) trait Rule: Fn(&mut Option<Stamp>, Stamp) -> Judged + Copy {}
impl<R: Fn(&mut Option<Stamp>, Stamp) -> Judged + Copy> Rule for R {}

/// The watermark of one resource: held by the write that runs, and waited for by admissions.
#[derive(Debug, Default)]
pub(super) struct Watermark {
    highest: Mutex<Option<Stamp>>,
    waiting: Mutex<Waiting>,
    /// Whether `waiting` has any; written under its lock.
    some_wait: AtomicBool,
}

/// The admissions that wait, in the order in which they came.
#[derive(Debug, Default)]
struct Waiting {
    admissions: BTreeMap<u64, (Stamp, oneshot::Sender<Judged>)>,
    next: u64,
}

impl Watermark {
    /// Holds the watermark; the thread waits until it is free.
    pub(super) fn hold<R: Rule>(&self, rule: R) -> Held<'_, R> {
        Held { watermark: self, highest: Some(lock(&self.highest)), rule }
    }

    /// Judges a stamp when no write runs.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future takes the stamp back, unless it was judged already.
    pub(super) async fn admit(&self, presented: Stamp, rule: impl Rule) -> Judged {
        loop {
            if let Some(mut held) = self.try_hold(rule) {
                return held.judge(presented);
            }
            let (place, told) = self.wait(presented);
            // The write may have ended before it could see this one: then this sees the end of it.
            drop(self.try_hold(rule));
            let judged = told.await;
            drop(place);
            // Every admission that waits is told, unless a log subscriber panicked; then it asks anew.
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
        // Not a store: the write that looks later sees this, or this sees what that write did before.
        self.some_wait.swap(true, Ordering::AcqRel);
        (Place { watermark: self, number }, told)
    }
}

/// A watermark that is held. Who waits is judged when it is dropped, also by a panic.
pub(super) struct Held<'a, R: Rule> {
    watermark: &'a Watermark,
    /// `None` only when it has been given back.
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

    /// Judges those who wait. Their own futures could not: their executor may be on the thread that
    /// waits to write next, and writes that follow each other would let none of them in.
    fn judge_waiting(&mut self) {
        let mut waiting = lock(&self.watermark.waiting);
        let admissions = mem::take(&mut waiting.admissions);
        self.watermark.some_wait.store(false, Ordering::Relaxed);
        drop(waiting);
        for (presented, tell) in admissions.into_values() {
            // One that was dropped meanwhile may have been admitted, as its method says.
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
            // Not a load, as in `wait`: one that came since then may not have found it free.
            if !self.watermark.some_wait.fetch_or(false, Ordering::AcqRel) {
                return;
            }
            // Where another holds it now, that one looks when it ends.
            let Some(highest) = try_lock(&self.watermark.highest) else { return };
            self.highest = Some(highest);
        }
    }
}

/// The place of an admission that waits; dropping it takes the admission back.
struct Place<'a> {
    watermark: &'a Watermark,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        lock(&self.watermark.waiting).admissions.remove(&self.number);
    }
}

/// A panic of a caller's write leaves nothing half done here: the watermark had moved before.
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
