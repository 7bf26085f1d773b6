use std::{
    collections::HashMap,
    mem,
    sync::{Arc, Condvar, PoisonError},
};

use leasehold_core::{Mutex, Stamp};
use tokio::sync::oneshot;

use crate::{
    error::StaleFence,
    gate::{FenceGate, GateFuture, Refusals, Verdict, judge},
};

/// Watermarks in the memory of this process, for data that lives there too.
///
/// It forgets no watermark, so its memory grows with the resources: name something that recurs, not
/// a request. It knows only writers of this process; a storage that several processes share needs
/// its own gate.
///
/// [`write`](Self::write) blocks its thread while another write to the resource runs. An admission
/// also waits for that write, but without blocking: other tasks go on.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::{LockRuntime, fencing::MemoryGate};
///
/// let locks = LockRuntime::embedded()?;
/// let lock = locks.lock("article/7")?;
/// let (gate, mut stock) = (MemoryGate::new(), 10);
///
/// let late = lock.acquire().await?;
/// locks.force_release("article/7").await?; // its lease is gone, and it does not look
/// let next = lock.acquire().await?;
///
/// gate.write("article/7", next.stamp(), || stock -= 1)?;
/// assert!(gate.write("article/7", late.stamp(), || stock -= 1).is_err());
/// assert_eq!(stock, 9);
/// # Ok(())
/// # }
/// ```
#[derive(Debug)]
pub struct MemoryGate {
    watermarks: Mutex<HashMap<Box<str>, Arc<Watermark>>>,
    refusals: Refusals,
}

impl MemoryGate {
    /// Makes a gate that has seen nothing yet.
    pub fn new() -> Self {
        Self { watermarks: Mutex::default(), refusals: Refusals::new("memory") }
    }

    /// Runs a write if the stamp is admitted, in one step with the comparison.
    ///
    /// Writes to one resource run one after another, writes to different ones at the same time. The
    /// watermark moves before the write runs, so older writes are refused even if it panics. A
    /// write that calls this method for the same resource waits for itself forever.
    ///
    /// # Errors
    ///
    /// [`StaleFence`] when another holder has been admitted; the write has not run.
    pub fn write<T>(
        &self,
        resource: &str,
        presented: Stamp,
        write: impl FnOnce() -> T,
    ) -> Result<T, StaleFence> {
        let watermark = self.watermark(resource);
        let (_turn, verdict) = watermark.begin_write(presented);
        self.refusals.judged(verdict, resource, presented)?;
        Ok(write())
    }

    /// Counts the resources that the gate knows.
    pub fn known_resources(&self) -> usize {
        self.watermarks.lock().len()
    }

    fn watermark(&self, resource: &str) -> Arc<Watermark> {
        let mut known = self.watermarks.lock();
        if let Some(watermark) = known.get(resource) {
            return Arc::clone(watermark);
        }
        Arc::clone(known.entry(resource.into()).or_default())
    }
}

impl Default for MemoryGate {
    fn default() -> Self {
        Self::new()
    }
}

impl FenceGate for MemoryGate {
    fn admit<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a> {
        Box::pin(async move {
            let verdict = self.watermark(resource).admit(presented).await;
            Ok(self.refusals.judged(verdict, resource, presented)?)
        })
    }
}

/// The watermark of one resource. Writes take turns, and admissions wait for the write that runs.
#[derive(Debug, Default)]
struct Watermark {
    state: Mutex<State>,
    /// The turn of a write is over.
    turn_over: Condvar,
}

#[derive(Debug, Default)]
struct State {
    highest: Option<Stamp>,
    /// Whether a write has its turn. Its thread does not hold the mutex meanwhile.
    is_writing: bool,
    /// How many threads wait for their turns: without any, the end of a turn wakes nobody.
    writers: usize,
    /// The admissions that wait, in the order in which they came.
    admissions: Vec<(Stamp, oneshot::Sender<Verdict>)>,
}

impl Watermark {
    /// Judges the stamp of a write, which has its turn until what is returned is dropped. Blocks the thread
    /// while another write runs.
    fn begin_write(&self, presented: Stamp) -> (WriteTurn<'_>, Verdict) {
        let mut state = self.state.lock();
        state.writers += 1;
        while state.is_writing {
            state = self.turn_over.wait(state).unwrap_or_else(PoisonError::into_inner);
        }
        state.writers -= 1;
        state.is_writing = true;
        (WriteTurn(self), state.judge(presented))
    }

    /// Judges a stamp when no write runs. Dropping the future withdraws the stamp, unless it was
    /// judged.
    async fn admit(&self, presented: Stamp) -> Verdict {
        loop {
            let told = {
                let mut state = self.state.lock();
                if !state.is_writing {
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
    /// Judges a stamp, and raises the highest if the stamp is admitted.
    fn judge(&mut self, presented: Stamp) -> Verdict {
        let verdict = judge(self.highest, presented);
        if let Verdict::Admit(_) = verdict {
            self.highest = Some(presented);
        }
        verdict
    }

    fn wait(&mut self, presented: Stamp) -> oneshot::Receiver<Verdict> {
        let (tell, told) = oneshot::channel();
        if self.admissions.len() == self.admissions.capacity() {
            // Withdrawn admissions must not pile up during a long write.
            self.admissions.retain(|(_, tell)| !tell.is_closed());
        }
        self.admissions.push((presented, tell));
        told
    }
}

/// The turn of a write. Dropping it, even in a panic, judges the waiting admissions.
#[derive(Debug)]
struct WriteTurn<'a>(&'a Watermark);

impl Drop for WriteTurn<'_> {
    fn drop(&mut self) {
        let Watermark { state, turn_over } = self.0;
        let mut state = state.lock();
        // Their own futures cannot judge them: their executor may run on the thread that waits for the
        // next write, and among writes without a pause they would never find a moment without one.
        let mut judged = Vec::new();
        for (presented, tell) in mem::take(&mut state.admissions) {
            if !tell.is_closed() {
                judged.push((state.judge(presented), tell));
            }
        }
        state.is_writing = false;
        if state.writers > 0 {
            turn_over.notify_one();
        }
        drop(state);
        for (verdict, tell) in judged {
            // If its future is dropped meanwhile, it is admitted all the same.
            let _ = tell.send(verdict);
        }
    }
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::{
            atomic::{AtomicBool, Ordering},
            mpsc,
        },
        task::{Context, Poll, Waker},
        time::Duration,
    };

    use leasehold_core::Mutex;
    use leasehold_testing::stamp;

    use super::*;
    use crate::{error::GateError, gate::Admitted};

    #[tokio::test]
    async fn a_taken_lease_shuts_out_the_holder_before_its_first_write() {
        let gate: Box<dyn FenceGate> = Box::new(MemoryGate::new());
        let (older, newer) = (stamp(41, 1), stamp(42, 2));
        assert_eq!(gate.admit("a", older).await, Ok(Admitted::First));
        assert_eq!(gate.advance("a", newer).await, Ok(Admitted::Newer));
        assert_eq!(gate.advance("a", newer).await, Ok(Admitted::Again));
        let stale = StaleFence { presented: older, highest: newer, resource: "a".into() };
        assert_eq!(gate.admit("a", older).await, Err(GateError::Stale(stale)));
        assert_eq!(gate.admit("b", older).await, Ok(Admitted::First));
    }

    #[test]
    fn a_refused_write_does_not_run_and_a_panicking_one_keeps_its_watermark() {
        let gate = MemoryGate::new();
        let panics = || gate.write("a", stamp(42, 2), || panic!("in the caller's write"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        let mut wrote = false;
        assert!(gate.write("a", stamp(41, 1), || wrote = true).is_err());
        assert!(gate.write("a", stamp(42, 3), || wrote = true).is_err());
        assert!(!wrote);
        assert_eq!(gate.write("a", stamp(42, 2), || 7), Ok(7));
        assert_eq!(gate.known_resources(), 1);
    }

    /// The control is the write itself: it blocks its thread, which an admission must not do.
    #[test]
    fn an_admission_waits_for_a_running_write_without_holding_its_thread() {
        let gate = Arc::new(MemoryGate::new());
        let (older, newer) = (stamp(41, 1), stamp(42, 2));
        let runtime = Arc::new(tokio::runtime::Builder::new_current_thread().build().unwrap());
        let (begun, polled) = mpsc::channel();
        let task = gate.write("a", older, || {
            let task = runtime.spawn({
                let gate = Arc::clone(&gate);
                async move { (gate.advance("a", newer).await, gate.admit("a", older).await) }
            });
            let runtime = Arc::clone(&runtime);
            std::thread::spawn(move || {
                // Lets the admission run until it waits.
                runtime.block_on(tokio::task::yield_now());
                begun.send(()).unwrap();
            });
            let polled = polled.recv_timeout(Duration::from_secs(20));
            assert_eq!(polled, Ok(()), "the admission holds the executor");
            assert!(!task.is_finished(), "it was admitted into a running write");
            task
        });
        let (advanced, late) = runtime.block_on(task.unwrap()).unwrap();
        assert_eq!(advanced, Ok(Admitted::Newer));
        assert!(matches!(late, Err(GateError::Stale(_))));
    }

    /// If the future of an admission is dropped, the admission does not happen; others get their
    /// turn.
    #[test]
    fn an_admission_that_is_dropped_is_taken_back() {
        let gate = MemoryGate::new();
        let context = &mut Context::from_waker(Waker::noop());
        let mut stays = gate.admit("a", stamp(43, 3));
        let written = gate.write("a", stamp(41, 1), || {
            let mut dropped = gate.admit("a", stamp(44, 4));
            assert!(dropped.as_mut().poll(context).is_pending());
            assert!(stays.as_mut().poll(context).is_pending());
        });
        assert_eq!(written, Ok(()));
        assert_eq!(stays.as_mut().poll(context), Poll::Ready(Ok(Admitted::Newer)));
        assert!(gate.write("a", stamp(42, 2), || ()).is_err());
        assert_eq!(gate.write("a", stamp(43, 3), || 7), Ok(7));
    }

    /// Every admission gets its turn, even among writes that follow each other without a pause.
    #[test]
    fn admissions_among_many_writes_all_end_and_the_newest_stands() {
        let gate = Arc::new(MemoryGate::new());
        let done = AtomicBool::new(false);
        std::thread::scope(|scope| {
            for _ in 0..2 {
                scope.spawn(|| {
                    while !done.load(Ordering::Relaxed) {
                        // Stale from the first admission on; the gate judges it every time.
                        let _ = gate.write("a", stamp(1, 1), || ());
                        let _ = gate.write("a", stamp(5_000, 5_000), || ());
                    }
                });
            }
            let runtime = tokio::runtime::Builder::new_current_thread().build().unwrap();
            runtime.block_on(async {
                for fence in 2..2_000 {
                    let admitted = gate.admit("a", stamp(fence, fence)).await;
                    assert!(matches!(admitted, Ok(_) | Err(GateError::Stale(_))), "{admitted:?}");
                }
                assert_eq!(gate.admit("a", stamp(9_000, 1)).await, Ok(Admitted::Newer));
            });
            done.store(true, Ordering::Relaxed);
        });
        assert!(gate.write("a", stamp(5_000, 5_000), || ()).is_err());
        assert_eq!(gate.write("a", stamp(9_000, 1), || 7), Ok(7));
    }

    #[test]
    fn racing_writers_leave_the_newest_value() {
        let gate = MemoryGate::new();
        let value = Mutex::new(0);
        std::thread::scope(|scope| {
            for fence in 1..=64 {
                let (gate, value) = (&gate, &value);
                scope.spawn(move || {
                    let _ = gate.write("a", stamp(fence, fence), || *value.lock() = fence);
                });
            }
        });
        assert_eq!(*value.lock(), 64);
    }
}
