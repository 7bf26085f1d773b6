use std::{
    mem,
    sync::{
        MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use leasehold_core::{Mutex, Stamp};
use tokio::sync::oneshot;

use crate::rule::{Verdict, judge};

/// The watermark of one resource. A running write holds it, and admissions wait for it.
#[derive(Debug, Default)]
pub(super) struct Watermark {
    /// Consistent also if a caller's write panics, because it moves before the write.
    highest: Mutex<Option<Stamp>>,
    /// The admissions that wait, in the order in which they came.
    waiting: Mutex<Vec<(Stamp, oneshot::Sender<Verdict>)>>,
    /// Whether there are any; changed only under the mutex of `waiting`.
    some_wait: AtomicBool,
}

impl Watermark {
    /// Holds the watermark; blocks the thread until the watermark is free.
    pub(super) fn hold(&self) -> Held<'_> {
        Held { watermark: self, highest: Some(self.highest.lock()) }
    }

    /// Judges a stamp when no write runs.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws the stamp, unless it was judged already.
    pub(super) async fn admit(&self, presented: Stamp) -> Verdict {
        loop {
            if let Some(highest) = self.highest.try_lock() {
                return Held { watermark: self, highest: Some(highest) }.judge(presented);
            }
            let told = self.wait(presented);
            // The write may have ended before this admission was in the queue: then this call
            // judges the queue.
            drop(Held { watermark: self, highest: self.highest.try_lock() });
            // Without a verdict only if another admission's waker panicked.
            if let Ok(verdict) = told.await {
                return verdict;
            }
        }
    }

    fn wait(&self, presented: Stamp) -> oneshot::Receiver<Verdict> {
        let (tell, told) = oneshot::channel();
        let mut waiting = self.waiting.lock();
        if waiting.len() == waiting.capacity() {
            // Withdrawn admissions must not pile up during a long write.
            waiting.retain(|(_, tell)| !tell.is_closed());
        }
        waiting.push((presented, tell));
        // A swap, not a store: either the `fetch_or` of a later `drop` sees the flag, or this swap
        // sees all that an earlier `drop` did, so that the watermark is free.
        self.some_wait.swap(true, Ordering::AcqRel);
        told
    }

    /// Judges the waiting admissions. Their own futures cannot do that: their executor may run on
    /// the thread that waits for the next write, and among writes without a pause they would never
    /// find the watermark free.
    fn judge_waiting(&self, highest: &mut Option<Stamp>) {
        let mut waiting = self.waiting.lock();
        let admissions = mem::take(&mut *waiting);
        self.some_wait.store(false, Ordering::Relaxed);
        drop(waiting);
        for (presented, tell) in admissions {
            if !tell.is_closed() {
                // If its future is dropped meanwhile, it is admitted all the same, as the
                // documentation of `admit` says.
                let _ = tell.send(raise(highest, presented));
            }
        }
    }
}

/// A watermark that is held. Dropping it, even in a panic, judges the waiting admissions.
#[derive(Debug)]
pub(super) struct Held<'a> {
    watermark: &'a Watermark,
    /// `None` when it is not held, or no longer.
    highest: Option<MutexGuard<'a, Option<Stamp>>>,
}

impl Held<'_> {
    pub(super) fn judge(&mut self, presented: Stamp) -> Verdict {
        raise(self.highest.as_deref_mut().unwrap_or(&mut None), presented)
    }
}

impl Drop for Held<'_> {
    fn drop(&mut self) {
        let Watermark { highest, some_wait, .. } = self.watermark;
        while let Some(held) = &mut self.highest {
            if some_wait.load(Ordering::Relaxed) {
                self.watermark.judge_waiting(held);
            }
            self.highest = None;
            // A `fetch_or`, not a load, for the same reason as in `wait`: an admission that came
            // meanwhile may have found the watermark held.
            if some_wait.fetch_or(false, Ordering::AcqRel) {
                self.highest = highest.try_lock();
            }
        }
    }
}

/// Judges a stamp, and raises the highest if the stamp is admitted.
fn raise(highest: &mut Option<Stamp>, presented: Stamp) -> Verdict {
    let verdict = judge(*highest, presented);
    if let Verdict::Admit(_) = verdict {
        *highest = Some(presented);
    }
    verdict
}
