use std::{
    future::Future,
    pin::Pin,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    task::{Context, Poll, Wake, Waker},
    time::Duration,
};

use leasehold::{
    LockName,
    time::{Clock, Instant},
};
use leasehold_core::Sleep;
use leasehold_testkit::sim::Stops;

use super::{bounds::ROUND, plan::millis, worker::Worker};

/// How long the look at the holder may take at the end of a wait.
const A_LOOK: Duration = millis(250);
/// How long a try waits for a lock that is kept idle.
const RECALL: Duration = millis(50);
/// What clocks that run at other rates, and the server's own time, add to that.
const SLACK: Duration = millis(4);

/// A future that an executor polls late, or at once.
pub(crate) struct Late<'a, F> {
    inner: F,
    worker: &'a Worker,
    name: &'a LockName,
    /// Who of the worker waits.
    asker: u64,
    /// How late at most; zero for at once.
    latest: Duration,
    alarm: Arc<Alarm>,
    sleep: Option<Sleep>,
    woken_at: Instant,
    stops: Stops,
}

/// Knows that the future was woken.
struct Alarm {
    rang: AtomicBool,
    outer: std::sync::Mutex<Option<Waker>>,
}

impl Wake for Alarm {
    fn wake(self: Arc<Self>) {
        self.rang.store(true, Ordering::Relaxed);
        let outer = self.outer.lock().unwrap_or_else(std::sync::PoisonError::into_inner).take();
        if let Some(outer) = outer {
            outer.wake();
        }
    }
}

impl<'a, F: Future + Unpin> Late<'a, F> {
    pub(crate) fn new(
        inner: F,
        (worker, asker): (&'a Worker, u64),
        name: &'a LockName,
        latest: Duration,
    ) -> Self {
        let outer = std::sync::Mutex::default();
        let alarm = Arc::new(Alarm { rang: AtomicBool::new(true), outer });
        let (woken_at, stops) = (worker.now(), Stops::default());
        // The caller makes the first poll: from then on the time counts.
        let sleep = Some(worker.place.local.sleep_until(worker.place.local.now()));
        Self { inner, worker, name, asker, latest, alarm, sleep, woken_at, stops }
    }

    /// When it was woken and not polled.
    pub(crate) fn stops(&self) -> Stops {
        self.stops.clone()
    }
}

impl<F: Future + Unpin> Future for Late<'_, F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let this = &mut *self;
        if this.latest.is_zero() {
            return Pin::new(&mut this.inner).poll(cx);
        }
        loop {
            if let Some(sleep) = &mut this.sleep {
                if sleep.as_mut().poll(cx).is_pending() {
                    return Poll::Pending;
                }
                this.sleep = None;
                this.stops.add(this.woken_at, this.worker.now());
                this.alarm.rang.store(false, Ordering::Relaxed);
                let waker = Waker::from(Arc::clone(&this.alarm));
                let polled = Pin::new(&mut this.inner).poll(&mut Context::from_waker(&waker));
                if polled.is_ready() {
                    return polled;
                }
            }
            let mut outer =
                this.alarm.outer.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
            *outer = Some(cx.waker().clone());
            drop(outer);
            if !this.alarm.rang.load(Ordering::Relaxed) {
                return Poll::Pending;
            }
            this.woken_at = this.worker.now();
            let local = &this.worker.place.local;
            let late = this.worker.dice.spread(Duration::from_micros(1), this.latest);
            this.worker.is_unpolled(this.asker, this.name, late);
            this.sleep = Some(local.sleep_until(local.now() + late));
        }
    }
}

/// When a call is to end.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Due {
    at: Instant,
    grace: Duration,
}

impl Due {
    /// A wait that begins now ends after such a time and a look at the holder.
    pub(crate) fn wait(worker: &Worker, wait: Duration) -> Self {
        Self { at: worker.in_local(wait), grace: A_LOOK + SLACK }
    }

    /// A try that begins now ends after one command at most, and the next look of its runtime; where
    /// locks are kept idle, it may wait for one to be given up.
    pub(crate) fn one_command(worker: &Worker) -> Self {
        let plan = &worker.scene.plan;
        let recall = if plan.kept_quarters > 0 { RECALL } else { Duration::ZERO };
        let time = plan.command_deadline() + recall;
        Self { at: worker.in_local(time), grace: ROUND + SLACK }
    }

    /// Complains of a call that ends now and was due before: neither its process nor its poll being
    /// late excuses that.
    pub(crate) fn check(self, worker: &Worker, name: &LockName, what: &str, polls: Option<&Stops>) {
        let now = worker.now();
        let late = now.saturating_since(self.at);
        let stopped = worker.place.stops.within(self.at, now);
        let unpolled = polls.map_or(Duration::ZERO, |polls| polls.within(self.at, now));
        let late = late.saturating_sub(stopped + unpolled);
        worker.scene.was_late(late);
        if late > self.grace {
            let (process, due) = (worker.place.process, self.at);
            worker.scene.complain(format!(
                "at {now:?} process {process}, {name}: {what} ends {late:?} after it was due at \
                 {due:?}, at most {:?} were right",
                self.grace
            ));
        }
    }
}
