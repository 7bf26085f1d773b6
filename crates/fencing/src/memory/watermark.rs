use std::{
    mem,
    sync::{Mutex, MutexGuard, PoisonError},
};

use leasehold_core::Stamp;
use tokio::sync::oneshot;

use crate::rule::{Verdict, judge};

/// The watermark of one resource. Writes run one after another, and admissions wait for the one
/// that runs.
#[derive(Debug, Default)]
pub(super) struct Watermark {
    /// Locked while a write runs. Code that needs both mutexes locks this one first.
    writes: Mutex<()>,
    /// Locked for an instant only.
    state: Mutex<State>,
}

#[derive(Debug, Default)]
struct State {
    highest: Option<Stamp>,
    is_written: bool,
    /// The admissions that wait, in the order in which they came.
    waiting: Vec<(Stamp, oneshot::Sender<Verdict>)>,
}

impl Watermark {
    /// Judges a stamp; the write that it admits runs until the answer is dropped. Blocks the thread
    /// while another write runs.
    pub(super) fn write(&self, presented: Stamp) -> Result<Write<'_>, Stamp> {
        let turn = lock(&self.writes);
        let mut state = lock(&self.state);
        match state.judge(presented) {
            Verdict::Refuse { highest } => Err(highest),
            Verdict::Admit(_) => {
                state.is_written = true;
                Ok(Write { watermark: self, _turn: turn })
            }
        }
    }

    /// Judges a stamp when no write runs.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future withdraws the stamp, unless it was judged already.
    pub(super) async fn admit(&self, presented: Stamp) -> Verdict {
        loop {
            let told = {
                let mut state = lock(&self.state);
                if !state.is_written {
                    return state.judge(presented);
                }
                state.wait(presented)
            };
            // Without a verdict only if another admission's waker panicked.
            if let Ok(verdict) = told.await {
                return verdict;
            }
        }
    }
}

impl State {
    /// Raises the highest stamp if a newer one is admitted.
    fn judge(&mut self, presented: Stamp) -> Verdict {
        let verdict = judge(self.highest, presented);
        if let Verdict::Admit(_) = verdict {
            self.highest = Some(presented);
        }
        verdict
    }

    fn wait(&mut self, presented: Stamp) -> oneshot::Receiver<Verdict> {
        let (tell, told) = oneshot::channel();
        if self.waiting.len() == self.waiting.capacity() {
            // Withdrawn admissions must not pile up during a long write.
            self.waiting.retain(|(_, tell)| !tell.is_closed());
        }
        self.waiting.push((presented, tell));
        told
    }
}

/// A write that runs. Dropping it, even in a panic, judges the admissions that wait.
///
/// Their own futures cannot do that: their executor may run on the thread that waits for the next
/// write, and among writes without a pause they would never find the watermark free.
#[derive(Debug)]
pub(super) struct Write<'a> {
    watermark: &'a Watermark,
    _turn: MutexGuard<'a, ()>,
}

impl Drop for Write<'_> {
    fn drop(&mut self) {
        let mut state = lock(&self.watermark.state);
        state.is_written = false;
        let waiting = mem::take(&mut state.waiting).into_iter();
        let waiting = waiting.filter(|(_, tell)| !tell.is_closed());
        let judged: Vec<_> =
            waiting.map(|(presented, tell)| (tell, state.judge(presented))).collect();
        // Sent when the mutex is free: a waker may poll at once.
        drop(state);
        for (tell, verdict) in judged {
            let _ = tell.send(verdict);
        }
    }
}

/// Ignores poison: if a caller's write panics, the watermark is consistent, because it moved
/// before the write.
pub(super) fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
