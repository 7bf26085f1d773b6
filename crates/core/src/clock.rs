#![expect(clippy::disallowed_methods, reason = "the one file that reads clocks and sets timers")]

use std::{
    fmt,
    future::{Future, pending},
    num::NonZeroU64,
    ops::{Add, Sub},
    pin::Pin,
    time::{Duration, SystemTime, UNIX_EPOCH},
};

use crate::durations::LONGEST_NAP;

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
}

/// Resolves once it is `at`; without a time never, and no timer is made.
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

/// Nanoseconds that fit 584 years, far beyond any deadline.
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
#[derive(Debug, Clone, Copy, Default)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Instant {
        boot_time()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        Box::pin(async move {
            loop {
                let left = at.saturating_since(boot_time());
                if left.is_zero() {
                    return;
                }
                tokio::time::sleep(left.min(LONGEST_NAP)).await;
            }
        })
    }

    fn unix_time(&self) -> Duration {
        SystemTime::now().duration_since(UNIX_EPOCH).unwrap_or_default()
    }
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
}
