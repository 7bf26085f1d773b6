use std::{
    collections::{BTreeMap, HashMap},
    mem,
    sync::{Arc, Condvar, Mutex, MutexGuard, PoisonError},
};

use leasehold_core::Stamp;
use tokio::sync::oneshot;

use crate::{
    error::StaleFence,
    gate::{FenceGate, GateFuture},
    refusal::Refusals,
    rule::{Admitted, Verdict, judge},
};

/// Watermarks in the memory of this process, for data that lives there too.
///
/// It keeps one watermark for every resource it has ever seen, and forgets none: its memory is
/// bounded by the number of resources alone, so resources should be things that recur, not
/// requests. It knows only writers of this process; a storage that is shared needs its own gate.
///
/// [`write`](Self::write) holds its thread while another write to the resource runs. An admission
/// waits for that write too, but as a future does: other tasks go on.
#[derive(Debug)]
pub struct MemoryGate {
    watermarks: Mutex<HashMap<Box<str>, Arc<Watermark>>>,
    refusals: Refusals,
}

/// The watermark of one resource, and who waits until the write that runs has ended.
#[derive(Debug, Default)]
struct Watermark {
    state: Mutex<State>,
    ended: Condvar,
}

#[derive(Debug, Default)]
struct State {
    highest: Option<Stamp>,
    writing: bool,
    /// Threads that wait to write.
    blocked: usize,
    /// Admissions, in the order in which they came.
    waiting: BTreeMap<u64, (Stamp, oneshot::Sender<Judged>)>,
    next: u64,
}

type Judged = Result<Admitted, StaleFence>;

impl MemoryGate {
    /// A gate that has seen nothing yet.
    pub fn new() -> Self {
        Self { watermarks: Mutex::default(), refusals: Refusals::new("memory") }
    }

    /// Runs a write if the stamp is admitted, in one step with the comparison.
    ///
    /// Writes to one resource run one after another, writes to different ones at the same time.
    /// The watermark moves before the write runs, so a write that panics lets no older one in.
    /// A write that calls this method for the same resource waits for itself forever.
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
        let _running = self.begin(&watermark, resource, presented)?;
        Ok(write())
    }

    /// How many resources the gate knows.
    pub fn known_resources(&self) -> usize {
        lock(&self.watermarks).len()
    }

    /// Waits until no write runs, and begins one.
    fn begin<'a>(
        &'a self,
        watermark: &'a Watermark,
        resource: &'a str,
        presented: Stamp,
    ) -> Result<Running<'a>, StaleFence> {
        let mut state = lock(&watermark.state);
        while state.writing {
            state.blocked += 1;
            state = watermark.ended.wait(state).unwrap_or_else(PoisonError::into_inner);
            state.blocked -= 1;
        }
        match self.pass(&mut state.highest, resource, presented) {
            Ok(_) => {
                state.writing = true;
                Ok(Running { gate: self, watermark, resource })
            }
            Err(refused) => {
                // The one that was woken does not write: the next has its turn.
                watermark.wake_one(&state);
                Err(refused)
            }
        }
    }

    async fn admission(&self, resource: &str, presented: Stamp) -> Judged {
        let watermark = self.watermark(resource);
        loop {
            let (place, told) = {
                let mut state = lock(&watermark.state);
                if !state.writing {
                    return self.pass(&mut state.highest, resource, presented);
                }
                let (tell, told) = oneshot::channel();
                let number = state.next;
                state.next += 1;
                state.waiting.insert(number, (presented, tell));
                (Place { watermark: &watermark, number }, told)
            };
            let judged = told.await;
            drop(place);
            // Nobody is dropped untold but by a panic of a log; then it asks anew.
            if let Ok(judged) = judged {
                return judged;
            }
        }
    }

    fn pass(&self, seen: &mut Option<Stamp>, resource: &str, presented: Stamp) -> Judged {
        match judge(*seen, presented) {
            Verdict::Admit(admitted) => {
                *seen = Some(presented);
                self.refusals.admitted();
                Ok(admitted)
            }
            Verdict::Refuse { highest } => Err(self.refusals.refuse(resource, presented, highest)),
        }
    }

    fn watermark(&self, resource: &str) -> Arc<Watermark> {
        let mut watermarks = lock(&self.watermarks);
        if let Some(watermark) = watermarks.get(resource) {
            return Arc::clone(watermark);
        }
        Arc::clone(watermarks.entry(resource.into()).or_default())
    }
}

impl Default for MemoryGate {
    fn default() -> Self {
        Self::new()
    }
}

impl FenceGate for MemoryGate {
    fn admit<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a> {
        Box::pin(async move { Ok(self.admission(resource, presented).await?) })
    }
}

impl Watermark {
    fn wake_one(&self, state: &State) {
        if state.blocked > 0 {
            self.ended.notify_one();
        }
    }
}

/// A write that runs; it ends when this is dropped, also by a panic.
struct Running<'a> {
    gate: &'a MemoryGate,
    watermark: &'a Watermark,
    resource: &'a str,
}

impl Drop for Running<'_> {
    fn drop(&mut self) {
        let state = &mut *lock(&self.watermark.state);
        // Judged here and not by their own futures: their executor may be the one that a thread
        // blocks which waits to write, and writes that follow each other would let none of them in.
        for (presented, tell) in mem::take(&mut state.waiting).into_values() {
            let judged = self.gate.pass(&mut state.highest, self.resource, presented);
            // One that was dropped meanwhile may have been admitted, as it is documented.
            let _ = tell.send(judged);
        }
        state.writing = false;
        self.watermark.wake_one(state);
    }
}

/// The place of an admission that waits; dropping it takes the admission back.
struct Place<'a> {
    watermark: &'a Watermark,
    number: u64,
}

impl Drop for Place<'_> {
    fn drop(&mut self) {
        lock(&self.watermark.state).waiting.remove(&self.number);
    }
}

/// A panic of a caller's write leaves nothing half done here: no lock is held while it runs.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::{
        panic::{AssertUnwindSafe, catch_unwind},
        sync::mpsc,
        task::{Context, Poll, Waker},
        time::Duration,
    };

    use super::*;
    use crate::{error::GateError, testing::stamp};

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

    /// The control is the write itself: it holds its thread, which is what an admission must not do.
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

    /// A future that is dropped takes its place along; one that stays has its turn.
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

    #[test]
    fn racing_writers_leave_the_newest_value() {
        let gate = MemoryGate::new();
        let value = Mutex::new(0);
        std::thread::scope(|scope| {
            for fence in 1..=64 {
                let (gate, value) = (&gate, &value);
                scope.spawn(move || {
                    let _ = gate.write("a", stamp(fence, fence), || *lock(value) = fence);
                });
            }
        });
        assert_eq!(*lock(&value), 64);
    }
}
