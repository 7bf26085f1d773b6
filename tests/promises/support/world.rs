use std::{sync::Arc, time::Duration};

use leasehold::{
    LockName, LockRuntime, LockRuntimeBuilder,
    store::{FenceSettings, Inspection, LeaseRecord, MemoryStore},
    time::{Clock, Instant, SystemClock},
};
use leasehold_core::{LockStore, store::Ask};
use leasehold_testkit::{
    CommandKind, Fault, FaultyStore, Gate, ManualClock, Patience, Rule, SeededEntropy, Wrong,
    WrongStore, contract::StoreUnderTest,
};

use super::words::{millis, secs};

/// A store that a test can disturb, with the time that passes for it.
#[derive(Debug, Clone)]
pub(crate) struct World {
    /// Where commands go wrong.
    pub(crate) store: FaultyStore,
    time: Time,
    any_clock: Arc<dyn Clock>,
    behind: Arc<dyn LockStore>,
    // Lives as long as the world does.
    _server: Option<Arc<dyn StoreUnderTest>>,
}

#[derive(Debug, Clone)]
enum Time {
    Virtual { manual: ManualClock, memory: Arc<MemoryStore> },
    Real,
}

impl World {
    /// The name that most tests are about.
    pub(crate) const NAME: &'static str = "orders/42";

    /// The embedded store in virtual time.
    pub(crate) fn new() -> Self {
        Self::on_clock(&ManualClock::new(), Arc::new)
    }

    /// The embedded store on a clock made of a manual one.
    pub(crate) fn on_clock<C: Clock>(
        manual: &ManualClock,
        clock: impl Fn(ManualClock) -> Arc<C>,
    ) -> Self {
        let shown: Arc<dyn Clock> = clock(manual.clone());
        let memory = Arc::new(MemoryStore::new(Arc::clone(&shown), FenceSettings::default()));
        let behind: Arc<dyn LockStore> = Arc::clone(&memory) as _;
        let store = FaultyStore::new(Arc::clone(&behind), Arc::clone(&shown));
        let time = Time::Virtual { manual: manual.clone(), memory };
        Self { store, time, any_clock: shown, behind, _server: None }
    }

    /// Real servers, in real time: one, a Sentinel group, or a Cluster.
    pub(crate) async fn on<S: StoreUnderTest>() -> Self {
        let server: Arc<dyn StoreUnderTest> = Arc::from(S::start(FenceSettings::default()).await);
        let behind = server.store();
        let any_clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let store = FaultyStore::new(Arc::clone(&behind), Arc::clone(&any_clock));
        Self { store, time: Time::Real, any_clock, behind, _server: Some(server) }
    }

    /// Another line to the same store, with faults of its own.
    pub(crate) fn another_line(&self) -> Self {
        let store = FaultyStore::new(Arc::clone(&self.behind), self.any_clock());
        Self { store, ..self.clone() }
    }

    /// Another line to the same store, for processes with other settings of fences.
    pub(crate) fn line_with(&self, fencing: FenceSettings) -> Self {
        let behind: Arc<dyn LockStore> = Arc::new(self.memory().beside(fencing));
        let store = FaultyStore::new(Arc::clone(&behind), self.any_clock());
        Self { store, behind, ..self.clone() }
    }

    /// The manual clock of a virtual world.
    pub(crate) fn clock(&self) -> &ManualClock {
        match &self.time {
            Time::Virtual { manual, .. } => manual,
            Time::Real => panic!("this world is not virtual"),
        }
    }

    /// The embedded store of a virtual world.
    pub(crate) fn memory(&self) -> &MemoryStore {
        match &self.time {
            Time::Virtual { memory, .. } => memory,
            Time::Real => panic!("this world is not virtual"),
        }
    }

    fn any_clock(&self) -> Arc<dyn Clock> {
        Arc::clone(&self.any_clock)
    }

    /// Settings of a runtime of this world: ttl 10 s, and everything else as usual.
    pub(crate) fn builder(&self, seed: u64) -> LockRuntimeBuilder {
        LockRuntime::builder()
            .clock(self.any_clock())
            .entropy(Arc::new(SeededEntropy::new(seed)))
            .ttl(secs(10))
    }

    /// A runtime of this world; every seed is another.
    pub(crate) fn runtime(&self, seed: u64) -> LockRuntime {
        self.start(self.builder(seed))
    }

    /// A runtime with settings.
    pub(crate) fn start(&self, builder: LockRuntimeBuilder) -> LockRuntime {
        builder.on_store(Arc::new(self.store.clone())).expect("the settings are in range")
    }

    /// A runtime with settings that does something wrong.
    pub(crate) fn start_wrong(&self, builder: LockRuntimeBuilder, wrong: Wrong) -> LockRuntime {
        let clock = Arc::new(self.clock().clone());
        let store = WrongStore::new(Arc::new(self.store.clone()), clock, wrong);
        builder.on_store(Arc::new(store)).expect("the settings are in range")
    }

    /// Lets every reply to a kind of command take so long, however many are on their way.
    pub(crate) fn slow_down(&self, kind: CommandKind, time: Duration) {
        let (gate, world) = (Gate::new(), self.clone());
        self.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(kind).always());
        tokio::spawn(async move {
            for n in 1.. {
                gate.wait_for_arrivals(n).await;
                let (gate, world) = (gate.clone(), world.clone());
                tokio::spawn(async move {
                    world.pass_quietly(time).await;
                    gate.let_pass(1);
                });
            }
        });
    }

    /// Lets those at a gate through one after the other, each after a time.
    pub(crate) fn let_through(&self, gate: Gate, time: Duration) {
        let world = self.clone();
        tokio::spawn(async move {
            for n in 1.. {
                gate.wait_for_arrivals(n).await;
                world.pass_quietly(time).await;
                gate.let_pass(1);
            }
        });
    }

    /// Lets virtual time pass, with every timer on the way.
    pub(crate) async fn pass(&self, time: Duration) {
        self.clock().travel(time).await;
    }

    /// Waits for time that somebody else lets pass.
    pub(crate) async fn pass_quietly(&self, time: Duration) {
        self.any_clock.sleep_until(self.now() + time).await;
    }

    /// Lets the tasks run that can, without any time passing.
    pub(crate) async fn settle(&self) {
        self.pass(Duration::ZERO).await;
    }

    /// Waits, in the world's own time, until a probe is content.
    pub(crate) async fn until(&self, what: &str, probe: impl AsyncFn() -> bool) {
        match &self.time {
            Time::Virtual { manual, .. } => {
                for _ in 0..20_000 {
                    manual.travel(Duration::ZERO).await;
                    if probe().await {
                        return;
                    }
                    manual.travel(millis(1)).await;
                }
                panic!("20 virtual seconds went by without: {what}");
            }
            Time::Real => {
                let patience = Patience::of(secs(20));
                let found = patience.until_async(async || probe().await.then_some(())).await;
                assert!(found.is_some(), "20 seconds went by without: {what}");
            }
        }
    }

    /// Waits until nobody holds the lock.
    pub(crate) async fn until_free(&self, name: &str) {
        self.until("the lock is free", async || self.holder(name).await.is_none()).await;
    }

    /// Who holds a lock, as the store itself sees it.
    pub(crate) async fn holder(&self, name: &str) -> Option<LeaseRecord> {
        let name = LockName::new(name).expect("the test has a valid name");
        let deadline = self.any_clock().now() + secs(20);
        match self.behind.inspect(&name, deadline).await.expect("the store behind answers") {
            Inspection::Held(record) => Some(record),
            Inspection::Free { .. } => None,
        }
    }

    /// How many holds the store counts; 0 when the lock is free.
    pub(crate) async fn holds(&self, name: &str) -> u32 {
        self.holder(name).await.map_or(0, |record| record.holds)
    }

    /// The present instant.
    pub(crate) fn now(&self) -> Instant {
        self.any_clock().now()
    }
}
