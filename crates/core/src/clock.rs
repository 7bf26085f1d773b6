#![expect(clippy::disallowed_methods, reason = "the one file that reads clocks and sets timers")]

use std::{
    cell::Cell,
    fmt,
    future::{Future, pending},
    num::NonZeroU64,
    ops::{Add, Sub},
    panic::catch_unwind,
    pin::Pin,
    sync::{LazyLock, Once, mpsc},
    thread,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use tokio::{
    runtime::{Handle, Id},
    sync::oneshot,
};

use crate::durations::{AN_HOUR, LONGEST_NAP, STOOD_STILL};

/// A future that a [`Clock`] resolves when its time has come.
pub type Sleep = Pin<Box<dyn Future<Output = ()> + Send>>;

/// A source of time: the only one in Leasehold.
///
/// Belief in a lease is measured on a clock that also runs while the machine sleeps, because
/// the server's does. Tests put a manual clock in its place.
pub trait Clock: fmt::Debug + Send + Sync + 'static {
    /// The present instant; never earlier than one returned before.
    fn now(&self) -> Instant;

    /// A future that resolves once [`now`](Clock::now) has reached `at`.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future forgets the timer and nothing else.
    fn sleep_until(&self, at: Instant) -> Sleep;

    /// The time since the Unix epoch, which may step; for the fences of the embedded store.
    // ADR 0007
    fn unix_time(&self) -> Duration;

    /// Whether it sleeps by timers of tokio where there are any.
    #[doc(hidden)]
    fn sleeps_by_tokio(&self) -> bool {
        false
    }
}

/// Resolves at `at`; never if that is `None`, and then no timer is made.
///
/// # Cancel safety
///
/// As that of [`Clock::sleep_until`].
pub async fn sleep_until_some(clock: &dyn Clock, at: Option<Instant>) {
    match at {
        Some(at) => clock.sleep_until(at).await,
        None => pending().await,
    }
}

/// Runs some work; returns `None` if the deadline comes first.
///
/// # Cancel safety
///
/// Dropping the future drops the work.
pub async fn within<T>(
    clock: &dyn Clock,
    deadline: Instant,
    work: impl Future<Output = T>,
) -> Option<T> {
    tokio::select! {
        biased;
        done = work => Some(done),
        // Lazily: work that is done at once needs no timer.
        () = sleep_until_some(clock, Some(deadline)) => None,
    }
}

/// Whether a tokio runtime runs what is spawned on it; also if this is polled inside of it, and if it has
/// ended.
///
/// # Cancel safety
///
/// Nothing is lost.
pub async fn runs(runtime: &Handle, clock: &dyn Clock) -> bool {
    if Handle::try_current().is_ok_and(|here| here.id() == runtime.id()) {
        return true;
    }
    let asked = runtime.spawn(async {});
    within(clock, clock.now() + STOOD_STILL, asked).await.is_some()
}

/// Whether the present tokio runtime has timers: without them tokio panics, which is caught here, and
/// remembered by each thread.
pub fn has_timers() -> bool {
    thread_local! {
        static SEEN: Cell<Option<(Id, bool)>> = const { Cell::new(None) };
    }
    let Ok(here) = Handle::try_current() else { return false };
    match SEEN.get() {
        Some((id, has)) if id == here.id() => has,
        _ => {
            let has = catch_unwind(|| drop(tokio::time::sleep(Duration::ZERO))).is_ok();
            SEEN.set(Some((here.id(), has)));
            has
        }
    }
}

/// A point in time of a [`Clock`], in nanoseconds since the origin of that clock.
// The origin is 1, not 0, so that `Option<Instant>` is no larger.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Instant(NonZeroU64);

impl Instant {
    /// The instant that lies `since_origin` after the clock's origin.
    pub const fn at(since_origin: Duration) -> Self {
        Self(NonZeroU64::MIN.saturating_add(saturating_nanos(since_origin)))
    }

    /// The time since the clock's origin.
    pub const fn since_origin(self) -> Duration {
        Duration::from_nanos(self.0.get() - 1)
    }

    /// How much later this instant is than `earlier`, or zero.
    pub fn saturating_since(self, earlier: Self) -> Duration {
        Duration::from_nanos(self.0.get().saturating_sub(earlier.0.get()))
    }
}

impl Add<Duration> for Instant {
    type Output = Self;

    fn add(self, duration: Duration) -> Self {
        Self(self.0.saturating_add(saturating_nanos(duration)))
    }
}

impl Sub<Duration> for Instant {
    type Output = Self;

    fn sub(self, duration: Duration) -> Self {
        let nanos = self.0.get().saturating_sub(saturating_nanos(duration));
        Self(NonZeroU64::new(nanos).unwrap_or(NonZeroU64::MIN))
    }
}

/// The origin.
impl Default for Instant {
    fn default() -> Self {
        Self(NonZeroU64::MIN)
    }
}

impl fmt::Debug for Instant {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}", self.since_origin())
    }
}

/// Nanoseconds in a `u64` reach 584 years, far beyond any deadline.
const fn saturating_nanos(duration: Duration) -> u64 {
    let seconds = duration.as_secs().saturating_mul(1_000_000_000);
    seconds.saturating_add(duration.subsec_nanos() as u64)
}

/// The clock of this machine: `CLOCK_BOOTTIME` on Linux, which counts suspended time.
///
/// On other Unix systems it is `CLOCK_MONOTONIC`, elsewhere that of the standard library, whose
/// behaviour in suspend is the platform's own (`docs/guarantees.md`). All processes of a Unix machine
/// have one origin. Timers stop in suspend, so a sleeping task reads the clock again every five
/// seconds.
///
/// It sleeps by timers of tokio. Where these do not follow it, because tokio's clock is paused, or there is
/// no tokio runtime, or one without timers, it sleeps on threads instead. In tests without a server, see
/// [`TokioClock`].
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        boot_time()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        Box::pin(async move {
            let mut has_timers = has_timers();
            loop {
                let now = boot_time();
                let left = at.saturating_since(now);
                if left.is_zero() {
                    return;
                }
                let nap = left.min(LONGEST_NAP);
                if has_timers {
                    tokio::time::sleep(nap).await;
                    // A timer that took less than half its time: tokio's clock is paused.
                    has_timers = boot_time().saturating_since(now) >= nap / 2;
                    if !has_timers {
                        warn_of_paused_clock();
                    }
                } else {
                    sleep_on_thread(nap).await;
                }
            }
        })
    }

    fn unix_time(&self) -> Duration {
        unix_time()
    }

    fn sleeps_by_tokio(&self) -> bool {
        true
    }
}

/// Sleeps on a thread of its own: while tokio's clock is paused its timers end at once, and to set them
/// again and again would keep a core busy.
async fn sleep_on_thread(nap: Duration) {
    let (done, over) = oneshot::channel::<()>();
    // Dropped with the future, it ends the thread: there are no more of them than sleeps.
    let (_awaited, left) = mpsc::channel::<()>();
    let sleep = move || {
        let _ = left.recv_timeout(nap);
        drop(done);
    };
    if thread::Builder::new().name("leasehold-nap".into()).spawn(sleep).is_ok() {
        // An error says that the thread is done.
        let _ = over.await;
    } else {
        // The system has no thread to spare.
        tokio::task::yield_now().await;
    }
}

fn warn_of_paused_clock() {
    static WARNED: Once = Once::new();
    WARNED.call_once(|| {
        tracing::warn!(
            "tokio's clock ran ahead of the machine's: it is paused, or a test has moved it; so timeouts of tokio \
             end early, and waits and leases of Leasehold take their real time; in a test without a server, let \
             the lock runtime follow tokio's clock: LockRuntime::builder().clock(Arc::new(TokioClock::current()))"
        );
    });
}

/// The clock of tokio, for tests: it is paused, and jumps ahead, where tokio's does, as under
/// `#[tokio::test(start_paused = true)]`.
///
/// It is for lock runtimes without a server, and for their stores. Beside a server it is wrong: a paused
/// clock jumps to the next timeout while an answer of the server is on its way.
#[derive(Debug, Clone)]
pub struct TokioClock(Option<Handle>);

impl TokioClock {
    /// The clock of the tokio runtime in which it is called; outside of one, that of this machine, which
    /// is never paused.
    pub fn current() -> Self {
        Self(Handle::try_current().ok())
    }

    /// Runs `look` inside the tokio runtime, so that it meets that runtime's clock.
    fn inside<T>(&self, look: impl FnOnce() -> T) -> T {
        let _inside = self.0.as_ref().map(Handle::enter);
        look()
    }
}

/// The origin of every [`TokioClock`]: an hour before the first use, and the Unix time then.
static TOKIO_ORIGIN: LazyLock<(std::time::Instant, Duration)> = LazyLock::new(|| {
    let now = std::time::Instant::now();
    match now.checked_sub(AN_HOUR) {
        Some(origin) => (origin, unix_time().saturating_sub(AN_HOUR)),
        None => (now, unix_time()),
    }
});

impl Clock for TokioClock {
    fn now(&self) -> Instant {
        let now = self.inside(tokio::time::Instant::now).into_std();
        Instant::at(now.saturating_duration_since(TOKIO_ORIGIN.0))
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        let clock = self.clone();
        let set = move || tokio::time::sleep(at.saturating_since(clock.now()));
        let (clock, mut sleep) = (self.clone(), self.inside(&set));
        Box::pin(async move {
            while clock.now() < at {
                sleep.await;
                sleep = clock.inside(&set);
            }
        })
    }

    fn unix_time(&self) -> Duration {
        TOKIO_ORIGIN.1 + self.now().since_origin()
    }
}

fn unix_time() -> Duration {
    SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
}

#[cfg(target_os = "linux")]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Boottime;
#[cfg(all(unix, not(target_os = "linux")))]
const CLOCK: rustix::time::ClockId = rustix::time::ClockId::Monotonic;

#[cfg(unix)]
fn boot_time() -> Instant {
    let time = rustix::time::clock_gettime(CLOCK);
    let seconds = u64::try_from(time.tv_sec).unwrap_or(0);
    let nanos = u32::try_from(time.tv_nsec).unwrap_or(0);
    Instant::at(Duration::new(seconds, nanos))
}

#[cfg(not(unix))]
fn boot_time() -> Instant {
    static ORIGIN: std::sync::LazyLock<std::time::Instant> =
        std::sync::LazyLock::new(std::time::Instant::now);
    Instant::at(ORIGIN.elapsed())
}

#[cfg(test)]
mod tests {
    use std::{
        future::poll_fn,
        pin::pin,
        task::{Context, Waker},
    };

    use super::*;

    #[test]
    fn instants_saturate_instead_of_overflowing() {
        let late = Instant::at(Duration::MAX);
        assert_eq!(late + Duration::from_secs(1), late);
        assert_eq!(Instant::default() - Duration::from_secs(1), Instant::default());
        assert_eq!(Instant::default().saturating_since(late), Duration::ZERO);
    }

    #[tokio::test]
    async fn a_sleep_ends_when_the_clock_says_so() {
        let clock = SystemClock;
        let at = clock.now() + Duration::from_millis(20);
        clock.sleep_until(at).await;
        assert!(clock.now() >= at);
        clock.sleep_until(Instant::default()).await;
    }

    /// How often a future is polled until its end.
    async fn polls(future: impl Future<Output = ()>) -> u32 {
        let (mut future, mut polls) = (pin!(future), 0);
        poll_fn(|cx| {
            polls += 1;
            future.as_mut().poll(cx)
        })
        .await;
        polls
    }

    #[tokio::test(start_paused = true)]
    async fn a_sleep_beside_a_paused_clock_of_tokio_takes_its_time_and_no_processor() {
        let clock = SystemClock;
        let at = clock.now() + Duration::from_millis(100);
        let polls = polls(clock.sleep_until(at)).await;
        assert!(clock.now() >= at && polls <= 4, "{polls}");
    }

    #[test]
    fn a_sleep_outside_of_tokio_ends_when_the_clock_says_so() {
        let clock = SystemClock;
        let at = clock.now() + Duration::from_millis(20);
        let mut sleep = clock.sleep_until(at);
        while sleep.as_mut().poll(&mut Context::from_waker(Waker::noop())).is_pending() {
            thread::yield_now();
        }
        assert!(clock.now() >= at);
    }

    #[test]
    fn a_sleep_in_a_tokio_runtime_without_timers_ends_when_the_clock_says_so() {
        let clock = SystemClock;
        let bare = tokio::runtime::Builder::new_current_thread().build().unwrap();
        for _ in 0..2 {
            let at = clock.now() + Duration::from_millis(20);
            bare.block_on(clock.sleep_until(at));
            assert!(clock.now() >= at && !bare.block_on(async { has_timers() }));
        }
    }

    #[test]
    fn a_tokio_runtime_that_nobody_drives_does_not_run() {
        let idle = tokio::runtime::Builder::new_current_thread().build().unwrap();
        let handle = idle.handle().clone();
        assert!(idle.block_on(runs(&handle, &SystemClock)), "inside of it");
        let other = tokio::runtime::Runtime::new().unwrap();
        assert!(!other.block_on(runs(&handle, &SystemClock)));
        drop(idle);
        assert!(other.block_on(runs(&handle, &SystemClock)), "one that has ended is told as that");
    }

    #[tokio::test(start_paused = true)]
    async fn the_clock_of_tokio_stands_still_and_jumps_with_it() {
        let (clock, other) = (TokioClock::current(), TokioClock::current());
        let (began, unix) = (clock.now(), clock.unix_time());
        let hour = Duration::from_secs(3600);
        clock.sleep_until(began + hour).await;
        let slept = other.now().saturating_since(began);
        assert!(slept >= hour && slept < hour + Duration::from_secs(1), "{slept:?}");
        assert_eq!(clock.unix_time(), unix + slept);
        tokio::time::advance(hour).await;
        assert_eq!(clock.now(), began + slept + hour);
        let elsewhere = thread::spawn(move || other.now());
        assert_eq!(elsewhere.join().unwrap(), clock.now(), "on every thread");
    }
}
