use std::{
    collections::VecDeque,
    fmt,
    future::{Future, poll_fn},
    sync::{
        Arc, Mutex, PoisonError,
        atomic::{AtomicBool, Ordering},
    },
    task::{Poll, Waker},
};

use leasehold_core::Instant;
use tokio::{
    runtime::{Builder, Runtime},
    task::JoinHandle,
};

use super::{drift::Drift, stops::Stops};
use crate::ManualClock;

/// What a process reads out of its sockets when it next runs.
pub(super) type Delivery = Box<dyn FnOnce() + Send>;

/// A process with a clock of its own, whose tasks run only when the world lets them.
pub(super) struct Process {
    /// `None` after a crash.
    tokio: Option<Runtime>,
    clock: ManualClock,
    drift: Drift,
    idle: Arc<Idle>,
    inbox: VecDeque<Delivery>,
    has_work: bool,
    stopped_until: Option<Instant>,
    stopped_since: Option<Instant>,
    stops: Stops,
}

/// Tells when a tokio runtime has nothing left to run.
#[derive(Default)]
struct Idle {
    reached: AtomicBool,
    waker: Mutex<Option<Waker>>,
}

impl Process {
    /// A process without tasks, whose clock runs in its own way.
    pub(super) fn new(now: Instant, drift: Drift) -> Self {
        let idle = Arc::new(Idle::default());
        let parked = Arc::clone(&idle);
        let tokio = Builder::new_current_thread()
            .event_interval(1)
            .on_thread_park(move || parked.reach())
            .build()
            .expect("a runtime without drivers needs nothing of the system");
        let clock = ManualClock::new();
        clock.set(drift.local(now));
        Self {
            tokio: Some(tokio),
            clock,
            drift,
            idle,
            inbox: VecDeque::new(),
            has_work: false,
            stopped_until: None,
            stopped_since: None,
            stops: Stops::default(),
        }
    }

    /// When the process was stopped.
    pub(super) fn stops(&self) -> &Stops {
        &self.stops
    }

    pub(super) fn clock(&self) -> &ManualClock {
        &self.clock
    }

    pub(super) fn is_alive(&self) -> bool {
        self.tokio.is_some()
    }

    /// Does something where the process's tokio runtime is the present one.
    pub(super) fn within<T>(&mut self, act: impl FnOnce() -> T) -> T {
        let _entered = self.tokio.as_ref().map(Runtime::enter);
        self.has_work = true;
        act()
    }

    /// Starts a task; `None` after a crash.
    pub(super) fn spawn<F>(&mut self, task: F) -> Option<JoinHandle<F::Output>>
    where
        F: Future<Output: Send> + Send + 'static,
    {
        self.has_work = true;
        self.tokio.as_ref().map(|tokio| tokio.spawn(task))
    }

    /// Puts something into the process's sockets.
    pub(super) fn deliver(&mut self, delivery: Delivery) {
        if self.is_alive() {
            self.inbox.push_back(delivery);
        }
    }

    /// Stops the process for a while, whatever wakes it.
    pub(super) fn stop_until(&mut self, now: Instant, at: Instant) {
        self.stopped_since.get_or_insert(now);
        self.stopped_until = self.stopped_until.max(Some(at));
    }

    /// Lets a stopped process go on by an instant.
    pub(super) fn stop_no_longer_than(&mut self, at: Instant) {
        self.stopped_until = self.stopped_until.map(|until| until.min(at));
    }

    /// Ends the process: its tasks are dropped where they stand.
    pub(super) fn crash(&mut self) {
        self.inbox.clear();
        self.tokio = None;
    }

    /// When the process has something to do; `None` for never, as far as it knows.
    pub(super) fn next_turn(&self, now: Instant) -> Option<Instant> {
        self.tokio.as_ref()?;
        let timer = self.clock.next_wake().map(|local| self.drift.world(local));
        let work = (self.has_work || !self.inbox.is_empty()).then_some(now);
        let next = work.into_iter().chain(timer).min()?;
        Some(self.stopped_until.map_or(next, |until| next.max(until)))
    }

    /// Lets the tasks run that can: all of them, or some polls. First the clock, or first the
    /// sockets, comes round.
    pub(super) fn run(&mut self, now: Instant, polls: Option<u64>, sockets_first: bool) {
        let Some(tokio) = &self.tokio else { return };
        let _entered = tokio.enter();
        if let (Some(since), Some(until)) = (self.stopped_since.take(), self.stopped_until.take()) {
            self.stops.add(since, until.min(now));
        }
        let inbox = std::mem::take(&mut self.inbox);
        let read = || {
            if !inbox.is_empty() {
                drop(tokio.spawn(async {
                    for delivery in inbox {
                        delivery();
                    }
                }));
            }
        };
        // Time has gone on before anything runs; what it wakes runs before what was read, or after.
        let local = self.drift.local(now);
        if sockets_first {
            read();
            self.clock.set(local);
        } else {
            self.clock.set(local);
            read();
        }
        match polls {
            None => {
                tokio.block_on(self.idle.reached());
                self.has_work = false;
            }
            Some(polls) => {
                tokio.block_on(some_turns(polls));
                self.has_work = true;
            }
        }
    }
}

impl Idle {
    /// Called when the runtime has nothing to run.
    fn reach(&self) {
        self.reached.store(true, Ordering::Relaxed);
        let waker = self.waker.lock().unwrap_or_else(PoisonError::into_inner).take();
        if let Some(waker) = waker {
            waker.wake();
        }
    }

    /// Resolves when the runtime has nothing to run.
    async fn reached(&self) {
        self.reached.store(false, Ordering::Relaxed);
        poll_fn(|cx| {
            if self.reached.load(Ordering::Relaxed) {
                return Poll::Ready(());
            }
            *self.waker.lock().unwrap_or_else(PoisonError::into_inner) = Some(cx.waker().clone());
            Poll::Pending
        })
        .await;
    }
}

/// Lets some polls of other tasks go by, of which there may be fewer.
async fn some_turns(mut polls: u64) {
    poll_fn(|cx| {
        if polls == 0 {
            return Poll::Ready(());
        }
        polls -= 1;
        cx.waker().wake_by_ref();
        Poll::Pending
    })
    .await;
}

impl fmt::Debug for Process {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Process")
            .field("clock", &self.clock)
            .field("drift", &self.drift)
            .field("alive", &self.is_alive())
            .finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_core::Clock;

    use super::*;

    #[test]
    fn a_process_runs_until_it_is_idle_and_no_further_than_told() {
        let now = ManualClock::START;
        let mut process = Process::new(now, Drift::none());
        let count = Arc::new(Mutex::new(0));
        let (counted, clock) = (Arc::clone(&count), process.clock().clone());
        process.spawn(async move {
            for _ in 0..10 {
                *counted.lock().unwrap() += 1;
                tokio::task::yield_now().await;
            }
            clock.sleep_until(clock.now() + Duration::from_millis(5)).await;
            *counted.lock().unwrap() += 100;
        });
        process.run(now, Some(4), false);
        assert!((3..=4).contains(&*count.lock().unwrap()));
        process.run(now, None, false);
        assert_eq!(*count.lock().unwrap(), 10);
        let wakes = process.next_turn(now).unwrap();
        assert_eq!(wakes, now + Duration::from_millis(5));
        process.stop_until(now, wakes + Duration::from_millis(1));
        assert_eq!(process.next_turn(wakes), Some(wakes + Duration::from_millis(1)));
        process.run(wakes + Duration::from_millis(1), None, true);
        assert_eq!(*count.lock().unwrap(), 110);
        assert_eq!(process.next_turn(wakes), None);
        assert_eq!(process.stops().within(now, wakes), Duration::from_millis(5));
    }
}
