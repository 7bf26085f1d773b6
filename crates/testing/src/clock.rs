use std::{
    collections::BTreeMap,
    fmt,
    future::Future,
    pin::Pin,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    task::{Context, Poll, Waker},
    time::Duration,
};

use leasehold_core::{Clock, Instant, Sleep};

/// A clock that stands still until a test moves it; clones show the same time.
///
/// It begins at [`ManualClock::START`], with the Unix time [`ManualClock::EPOCH`]. Sleeping tasks
/// are woken in the order of their instants when time reaches them. No timer of tokio is used.
#[derive(Clone)]
pub struct ManualClock {
    hands: Arc<Mutex<Hands>>,
}

struct Hands {
    now: Instant,
    unix: Duration,
    next_sleeper: u64,
    sleepers: BTreeMap<(Instant, u64), Waker>,
}

impl ManualClock {
    /// The instant at which every manual clock begins.
    pub const START: Instant = Instant::at(Duration::from_secs(1_000));

    /// The Unix time at which every manual clock begins: 14 November 2023, 22:13:20 UTC.
    pub const EPOCH: Duration = Duration::from_secs(1_700_000_000);

    /// How often [`travel`](Self::travel) lets other tasks run before it moves on.
    const YIELDS: usize = 64;

    /// A clock at the beginning.
    pub fn new() -> Self {
        let sleepers = BTreeMap::new();
        let hands = Hands { now: Self::START, unix: Self::EPOCH, next_sleeper: 0, sleepers };
        Self { hands: Arc::new(Mutex::new(hands)) }
    }

    /// Moves time on, and Unix time with it, and wakes the tasks that slept until then.
    pub fn advance(&self, by: Duration) {
        self.move_to(|now| now + by);
    }

    /// Moves time to `at`, and Unix time by as much, and wakes the tasks that slept until then.
    ///
    /// # Panics
    ///
    /// Panics if `at` has passed: a clock does not run backwards.
    pub fn set(&self, at: Instant) {
        self.move_to(|now| {
            assert!(at >= now, "a clock at {now:?} cannot be set back to {at:?}");
            at
        });
    }

    /// Steps the Unix time alone, forwards or backwards, as an administrator or NTP would.
    pub fn step_unix(&self, millis: i64) {
        let step = Duration::from_millis(millis.unsigned_abs());
        let mut hands = self.lock();
        hands.unix = match millis {
            0.. => hands.unix.saturating_add(step),
            _ => hands.unix.saturating_sub(step),
        };
    }

    /// The nearest instant that a task sleeps until.
    pub fn next_wake(&self) -> Option<Instant> {
        self.lock().sleepers.keys().next().map(|(at, _)| *at)
    }

    /// How many tasks sleep.
    pub fn sleepers(&self) -> usize {
        self.lock().sleepers.len()
    }

    /// Moves time on by `by`, stopping at every instant that a task sleeps until on the way, and
    /// lets the other tasks run at each stop.
    ///
    /// Exact on a current-thread runtime, where the tasks of one stop have all had their turns
    /// before time goes on.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves the clock where it has come to.
    pub async fn travel(&self, by: Duration) {
        let arrival = self.now() + by;
        loop {
            for _ in 0..Self::YIELDS {
                tokio::task::yield_now().await;
            }
            if self.now() >= arrival {
                return;
            }
            let stop = self.next_wake().map_or(arrival, |at| at.min(arrival));
            self.set(stop.max(self.now()));
        }
    }

    fn move_to(&self, next: impl FnOnce(Instant) -> Instant) {
        let mut hands = self.lock();
        let next = next(hands.now);
        hands.unix = hands.unix.saturating_add(next.saturating_since(hands.now));
        hands.now = next;
        let later = hands.sleepers.split_off(&(next, u64::MAX));
        let due = std::mem::replace(&mut hands.sleepers, later);
        // Wakers run code of others: not under the lock.
        drop(hands);
        due.into_values().for_each(Waker::wake);
    }

    fn lock(&self) -> MutexGuard<'_, Hands> {
        self.hands.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Default for ManualClock {
    fn default() -> Self {
        Self::new()
    }
}

impl fmt::Debug for ManualClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let hands = self.lock();
        f.debug_struct("ManualClock")
            .field("now", &hands.now)
            .field("unix", &hands.unix)
            .field("sleepers", &hands.sleepers.len())
            .finish()
    }
}

impl Clock for ManualClock {
    fn now(&self) -> Instant {
        self.lock().now
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        Box::pin(Nap { clock: self.clone(), at, key: None })
    }

    fn unix_time(&self) -> Duration {
        self.lock().unix
    }
}

/// A task that sleeps; it leaves the list of sleepers when it is dropped.
struct Nap {
    clock: ManualClock,
    at: Instant,
    key: Option<(Instant, u64)>,
}

impl Future for Nap {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let nap = &mut *self;
        let mut hands = nap.clock.lock();
        if hands.now >= nap.at {
            let woken = nap.key.take().and_then(|key| hands.sleepers.remove(&key));
            drop(hands);
            // A waker may be the last reference to a task that sleeps too: not under the lock.
            drop(woken);
            return Poll::Ready(());
        }
        let key = *nap.key.get_or_insert_with(|| {
            hands.next_sleeper += 1;
            (nap.at, hands.next_sleeper)
        });
        let before = hands.sleepers.insert(key, cx.waker().clone());
        drop(hands);
        drop(before);
        Poll::Pending
    }
}

impl Drop for Nap {
    fn drop(&mut self) {
        if let Some(key) = self.key {
            let waker = self.clock.lock().sleepers.remove(&key);
            drop(waker);
        }
    }
}
