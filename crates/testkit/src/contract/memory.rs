use std::{
    sync::{Arc, Mutex, PoisonError},
    time::Duration,
};

use leasehold_core::{
    Clock, Fence, FencePolicy, FenceSettings, Instant, LockName, LockStore, MemoryStore, Mode,
    Replication, RuntimeLabel, Ttl,
    seam::Part,
    store::{Acquire, AcquireAnswer, Ask, Release},
};

use super::{
    subject::{Capability, Snapshot, StoreUnderTest, Task},
    words::alice,
};
use crate::{ManualClock, Mistake, WrongServer};

/// The embedded store on a manual clock: virtual time, exact bounds.
#[derive(Debug)]
pub struct MemorySubject {
    clock: ManualClock,
    fencing: FenceSettings,
    mistake: Option<Mistake>,
    store: Mutex<Arc<WrongServer>>,
}

impl MemorySubject {
    /// An empty store on a manual clock of its own.
    pub fn new(fencing: FenceSettings) -> Self {
        Self::with_mistake(fencing, None)
    }

    /// The same with a mistake.
    pub fn with_mistake(fencing: FenceSettings, mistake: Option<Mistake>) -> Self {
        let clock = ManualClock::new();
        let store = Mutex::new(empty(&clock, fencing.clone(), mistake));
        Self { clock, fencing, mistake, store }
    }

    /// The store itself.
    pub fn memory(&self) -> Arc<MemoryStore> {
        Arc::clone(self.wrong().memory())
    }

    fn wrong(&self) -> Arc<WrongServer> {
        Arc::clone(&self.store.lock().unwrap_or_else(PoisonError::into_inner))
    }

    /// What a restart or a loss costs at the very least.
    fn outage(&self) {
        self.clock.advance(Duration::from_millis(10));
    }
}

fn empty(
    clock: &ManualClock,
    fencing: FenceSettings,
    mistake: Option<Mistake>,
) -> Arc<WrongServer> {
    let memory = MemoryStore::new(Arc::new(clock.clone()), fencing);
    Arc::new(WrongServer::new(Arc::new(memory), mistake))
}

impl StoreUnderTest for MemorySubject {
    fn start(fencing: FenceSettings) -> Task<'static, Box<dyn StoreUnderTest>> {
        Box::pin(async move { Box::new(Self::new(fencing)) as _ })
    }

    fn capabilities(&self) -> &'static [Capability] {
        &Capability::OF_ONE
    }

    fn store(&self) -> Arc<dyn LockStore> {
        self.wrong()
    }

    fn deadline(&self) -> Instant {
        self.clock.now() + Duration::from_secs(20)
    }

    fn slack(&self) -> Duration {
        Duration::ZERO
    }

    fn pass(&self, time: Duration) -> Task<'_> {
        Box::pin(async move { self.clock.advance(time) })
    }

    fn server_micros(&self) -> Task<'_, u64> {
        Box::pin(async move {
            u64::try_from(self.clock.unix_time().as_micros()).expect("before the year 586912")
        })
    }

    fn lose_all(&self) -> Task<'_> {
        Box::pin(async move {
            self.outage();
            self.memory().clear();
        })
    }

    fn lose_part<'a>(&'a self, name: &'a LockName, part: Part) -> Task<'a> {
        Box::pin(async move {
            self.memory().lose(name, part);
            // Real time passes, too.
            self.clock.advance(Duration::from_millis(1));
        })
    }

    fn restart(&self) -> Task<'_> {
        Box::pin(async move {
            self.outage();
            let anew = empty(&self.clock, self.fencing.clone(), self.mistake);
            *self.store.lock().unwrap_or_else(PoisonError::into_inner) = anew;
        })
    }

    /// Grants the last token but one, on a day in the year 2255.
    fn exhaust<'a>(&'a self, name: &'a LockName) -> Task<'a> {
        Box::pin(async move {
            assert_eq!(self.fencing.policy, FencePolicy::TimeFloor);
            let last_day = Duration::from_micros(Fence::MAX - 3_600_000_000);
            self.clock.advance(last_day.saturating_sub(self.clock.unix_time()));
            let store = self.memory();
            store.clear();
            let (name, id) = (name.clone(), alice(u64::MAX));
            let label = RuntimeLabel::new("the last but one");
            let watermark = Fence::try_from(Fence::MAX - 2).ok();
            let (ttl, deadline) = (Ttl::default(), self.deadline());
            let (mode, keeps, wait, acks) = (Mode::Write, false, None, Replication::NONE);
            let acquire =
                Acquire { name: name.clone(), id, mode, ttl, watermark, label, keeps, wait, acks };
            let Ok(AcquireAnswer::Granted(granted)) = store.ask(acquire, deadline).await else {
                panic!("{name} is not free");
            };
            assert_eq!(granted.last.get(), Fence::MAX - 1);
            let (fence, keep, next) = (granted.first, None, None);
            let release = Release { name, id, fence, keep, next };
            store.ask(release, deadline).await.expect("memory does not fail");
        })
    }

    /// The store as it shows itself, exact to the microsecond; meant for one name.
    fn snapshot(&self) -> Task<'_, Snapshot> {
        Box::pin(async move {
            let shown = format!("{:?}", self.memory());
            Snapshot::from([("memory".into(), (shown, Duration::ZERO))])
        })
    }

    fn left_behind(&self) -> Task<'_, Vec<String>> {
        Box::pin(async move {
            if self.fencing.policy == FencePolicy::Counter {
                // Counters without end are what this policy is.
                return Vec::new();
            }
            // What outlives a lease lives an eighth longer than it must.
            self.clock.advance((Ttl::MAX + *self.fencing.retentions().end()) * 2);
            let known = self.memory().known_names();
            (0..known).map(|n| format!("name number {n}")).collect()
        })
    }
}
