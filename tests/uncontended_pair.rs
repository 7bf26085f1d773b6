//! What an acquire and a release cost above the store, when nobody else wants the lock; alone in
//! its process, because the counting allocator is the global one.

use std::{
    future::{poll_fn, ready},
    pin::pin,
    sync::{
        Arc, OnceLock, Weak,
        atomic::{AtomicU64, Ordering},
    },
    task::{Context, Poll, Waker},
    time::Duration,
};

use allocation_counter::measure;
use leasehold::{
    Fence, LockRuntime, ReentrantLock, RuntimeId,
    time::{Clock, Instant},
};
use leasehold_core::{
    Entropy, LockStore, Secret, Sleep, Ttl,
    store::{AcquireAnswer, Command, Granted, Listener, ReleaseAnswer, Reply, StoreFuture},
};
use leasehold_testkit::ManualClock;
use tokio::{runtime::Handle, task::yield_now};
use tracing::{
    Dispatch, Event, Metadata, Subscriber,
    span::{Attributes, Id, Record},
    subscriber::{DefaultGuard, Interest, set_default},
};

/// How many names a runtime uses in turn.
const NAMES: usize = 100;

/// The allocations of a pair: those of the store are four of them, a boxed future for each command, and another
/// that bounds it, as for any store of `on_store`.
///
/// Of the acquire, its boxed future and its command, the state of the name, its queue, the grant, the lease, its
/// place in the watchdog's order and what its guards share; of the release, the end of the turn, the command that
/// outlives its caller, what its copies say, and its one copy in a list.
const ALLOCATIONS: u64 = 17;

/// The timers of a pair, if its commands are answered at once, or later: then those that bound the commands of a
/// store of `on_store`.
const TIMERS: [(bool, u64); 2] = [(false, 0), (true, 2)];

/// A free lock under each name: a store that does nothing but answer, at once or when it is polled
/// again.
#[derive(Debug, Default)]
struct Free {
    last: AtomicU64,
    answers_later: bool,
}

impl Free {
    fn reply(&self, command: Command) -> Reply {
        match command {
            Command::Acquire(acquire) => self.granted(acquire.ttl).into(),
            Command::Release(_) => ReleaseAnswer::Released.into(),
            other => unreachable!("a pair needs no {}", other.word()),
        }
    }

    fn granted(&self, ttl: Ttl) -> AcquireAnswer {
        let first = self.last.fetch_add(1024, Ordering::Relaxed) + 1;
        let token = |token: u64| Fence::try_from(token).expect("a token");
        let (first, last, remaining) = (token(first), token(first + 1023), ttl.get());
        AcquireAnswer::Granted(Granted {
            first,
            last,
            remaining,
            contended: false,
            regressed: false,
        })
    }
}

impl LockStore for Free {
    fn send(&self, command: Command, _: Instant) -> StoreFuture<'_, Reply> {
        let reply = self.reply(command);
        if !self.answers_later {
            return Box::pin(ready(Ok(reply)));
        }
        let mut reply = Some(reply);
        let mut is_sent = false;
        Box::pin(poll_fn(move |cx| {
            if std::mem::replace(&mut is_sent, true)
                && let Some(reply) = reply.take()
            {
                return Poll::Ready(Ok(reply));
            }
            cx.waker().wake_by_ref();
            Poll::Pending
        }))
    }

    fn listen(&self, _: RuntimeId, _: Weak<dyn Listener>) {}
}

/// A manual clock that counts the timers that are made.
#[derive(Debug, Clone, Default)]
struct CountingClock {
    manual: ManualClock,
    timers: Arc<AtomicU64>,
}

impl Clock for CountingClock {
    fn now(&self) -> Instant {
        self.manual.now()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        self.timers.fetch_add(1, Ordering::Relaxed);
        self.manual.sleep_until(at)
    }

    fn unix_time(&self) -> Duration {
        self.manual.unix_time()
    }
}

/// Jitter that is always the same: no lease falls due earlier than the one before it.
#[derive(Debug)]
struct NoJitter(RuntimeId);

impl Entropy for NoJitter {
    fn bits(&self) -> u64 {
        0
    }

    fn runtime_id(&self) -> RuntimeId {
        self.0
    }

    fn secret(&self) -> Secret {
        Secret::new([0, 0])
    }
}

struct Scene {
    clock: CountingClock,
    locks: Vec<ReentrantLock>,
    // The background tasks live as long.
    _runtime: LockRuntime,
}

impl Scene {
    fn new(answers_later: bool) -> Self {
        let clock = CountingClock::default();
        let entropy = NoJitter(RuntimeId::new(uuid::Uuid::from_u128(7)));
        let runtime = LockRuntime::builder()
            .clock(Arc::new(clock.clone()))
            .entropy(Arc::new(entropy))
            .on_store(Arc::new(Free { answers_later, ..Free::default() }))
            .expect("inside of tokio");
        let locks = (0..NAMES).map(|name| runtime.lock(format!("orders/{name}")).unwrap());
        Self { clock, locks: locks.collect(), _runtime: runtime }
    }

    /// One pair of each name.
    async fn pairs(&self) {
        for lock in &self.locks {
            lock.acquire().await.expect("it is free").release().await.expect("it is held");
            // All other tasks that were woken run now.
            for _ in 0..8 {
                yield_now().await;
            }
            self.clock.manual.advance(Duration::from_millis(1));
        }
    }

    /// How many timers were made: by commands, and by tasks of the runtime that went to sleep.
    fn timers(&self) -> u64 {
        self.clock.timers.load(Ordering::Relaxed)
    }
}

/// The output of a future that need not wait.
fn at_once<F: Future>(future: F) -> F::Output {
    match pin!(future).poll(&mut Context::from_waker(Waker::noop())) {
        Poll::Ready(output) => output,
        Poll::Pending => panic!("the store answers at once"),
    }
}

/// The allocations of a pair, of the worst of all names.
async fn allocations() -> u64 {
    let scene = Scene::new(false);
    scene.pairs().await;
    let of_a_pair = |lock: &ReentrantLock| {
        let counted = measure(|| {
            let guard = at_once(lock.acquire()).expect("it is free");
            at_once(guard.release()).expect("it is held");
        });
        counted.count_total
    };
    scene.locks.iter().map(of_a_pair).max().expect("there are names")
}

/// A subscriber that takes events, and spans or not. It is asked about each again and again, as one is whose filter
/// depends on more than the place.
#[derive(Debug, Clone, Default)]
struct Listening {
    takes_spans: bool,
    asked: Arc<AtomicU64>,
    taken: Arc<AtomicU64>,
}

impl Listening {
    fn here(takes_spans: bool) -> (Self, DefaultGuard) {
        // With a single subscriber, tracing remembers for good that nobody listens at a place which a thread without
        // one reaches first.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(Self::default()));
        let here = Self { takes_spans, ..Self::default() };
        (here.clone(), set_default(here))
    }
}

impl Subscriber for Listening {
    fn register_callsite(&self, _: &'static Metadata<'static>) -> Interest {
        Interest::sometimes()
    }

    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        if metadata.target() == "leasehold::spans" {
            self.asked.fetch_add(1, Ordering::Relaxed);
        }
        self.takes_spans || !metadata.is_span()
    }

    fn new_span(&self, _: &Attributes<'_>) -> Id {
        Id::from_u64(self.taken.fetch_add(1, Ordering::Relaxed) + 1)
    }

    fn record(&self, _: &Id, _: &Record<'_>) {}

    fn record_follows_from(&self, _: &Id, _: &Id) {}

    fn event(&self, _: &Event<'_>) {}

    fn enter(&self, _: &Id) {}

    fn exit(&self, _: &Id) {}
}

#[tokio::test]
async fn a_pair_allocates_no_more_than_it_did() {
    let allocations = allocations().await;
    assert!(allocations <= ALLOCATIONS, "{allocations}");
}

/// A service that logs, and does not trace.
#[tokio::test]
async fn spans_that_a_subscriber_refuses_allocate_nothing() {
    let (subscriber, _listening) = Listening::here(false);
    let allocations = allocations().await;
    assert!(allocations <= ALLOCATIONS, "{allocations}");
    let [asked, taken] =
        [subscriber.asked, subscriber.taken].map(|count| count.load(Ordering::Relaxed));
    assert_eq!((asked, taken), (2 * NAMES as u64, 0), "asked once for each acquire");
}

/// The control: spans that are taken are seen to allocate.
#[tokio::test]
async fn spans_that_a_subscriber_takes_allocate() {
    let (subscriber, _listening) = Listening::here(true);
    let allocations = allocations().await;
    assert!(allocations > ALLOCATIONS, "{allocations}");
    let taken = subscriber.taken.load(Ordering::Relaxed);
    assert_eq!(taken, 4 * NAMES as u64, "an acquire and a hold of each");
}

#[tokio::test]
async fn a_pair_wakes_no_task_but_its_own() {
    for (answers_later, timers) in TIMERS {
        let scene = Scene::new(answers_later);
        // The first lease tells the tasks of the runtime when to look.
        scene.pairs().await;
        let tasks = Handle::current().metrics().num_alive_tasks();
        let timers = scene.timers() + timers * NAMES as u64;
        scene.pairs().await;
        let after = (scene.timers(), Handle::current().metrics().num_alive_tasks());
        assert_eq!(after, (timers, tasks), "timers and tasks");
    }
}
