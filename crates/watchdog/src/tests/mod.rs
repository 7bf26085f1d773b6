//! Very many turns in virtual time: when they are renewed, in how many commands, and what failures
//! do to them.

use std::{
    collections::BTreeMap,
    sync::{
        Arc,
        atomic::{AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, Class, Clock, Entropy, Fence, Instant, LockName, Origin, RuntimeId, Secret,
    StoreError, StoreErrorKind, SystemEntropy, Terms, Ttl,
    lease::Grant,
    metric::ClassMetrics,
    outage::OutageWatch,
    store::{Granted, RenewAnswer},
};
use leasehold_testing::ManualClock;

use crate::{HeldLease, Renewing, Share, Watches, batch::RenewalBatch, watchdog::AnsweredBatch};

mod renewals;

const MS: Duration = Duration::from_millis(1);
const SECOND: Duration = Duration::from_secs(1);
const MANY: u64 = 10_000;

/// Bits that are the same in every run.
#[derive(Debug, Default)]
struct TestEntropy(AtomicU64);

impl Entropy for TestEntropy {
    fn bits(&self) -> u64 {
        // The finalizer of MurmurHash3, over a counter.
        let mut bits = self.0.fetch_add(0x9e37_79b9_7f4a_7c15, Ordering::Relaxed);
        for factor in [0xff51_afd7_ed55_8ccd, 0xc4ce_b9fe_1a85_ec53] {
            bits = (bits ^ (bits >> 33)).wrapping_mul(factor);
        }
        bits ^ (bits >> 33)
    }

    fn runtime_id(&self) -> RuntimeId {
        SystemEntropy.runtime_id()
    }

    fn secret(&self) -> Secret {
        Secret::new([0, 0])
    }
}

/// A watchdog without its task, and a server that is nothing but its answers.
struct Scene {
    clock: Arc<ManualClock>,
    watches: Arc<Watches>,
    runtime: RuntimeId,
    metrics: Arc<ClassMetrics>,
    leases: Vec<Arc<HeldLease>>,
    on_its_way: BTreeMap<(Instant, usize), AnsweredBatch>,
    /// When which command was sent, and how many turns it renewed.
    sent: Vec<(Instant, usize)>,
    lags: Vec<Duration>,
}

/// How long a command takes that is sent at an instant, and whether it fails.
type Weather<'a> = &'a mut dyn FnMut(Instant) -> (Duration, Option<StoreErrorKind>);

impl Scene {
    fn new() -> Self {
        let clock = Arc::new(ManualClock::default());
        let outages =
            Arc::new(OutageWatch::new(Arc::clone(&clock) as Arc<dyn Clock>, Origin::here()));
        let entropy = Arc::new(TestEntropy::default());
        let runtime = entropy.runtime_id();
        Self {
            clock,
            watches: Watches::new(outages, entropy, |is_held| is_held),
            runtime,
            metrics: Arc::new(ClassMetrics::new(Class::default())),
            leases: Vec::new(),
            on_its_way: BTreeMap::new(),
            sent: Vec::new(),
            lags: Vec::new(),
        }
    }

    /// Takes leases, all at one instant.
    fn take(&mut self, leases: u64, ttl: Ttl) {
        let now = self.clock.now();
        for number in 0..leases {
            let fence = Fence::try_from(number + 1).unwrap();
            let granted = Granted {
                first: fence,
                last: fence,
                remaining: ttl.get(),
                contended: false,
                regressed: false,
            };
            let name = LockName::new(format!("{ttl}/{number}")).unwrap();
            let id = AcquisitionId::new(self.runtime, number);
            let turn =
                Arc::new(Grant::from_granted(&name, id, Terms::without_acks(ttl), now, &granted));
            let (until, renewing) = (turn.believed_until(), Renewing::Always);
            let (max_hold, min_hold) = (None, None);
            let share = Share { turn, number, fence, until, renewing, max_hold, min_hold };
            let (lease, watch) = self.watches.take(None, share, now, Arc::clone(&self.metrics));
            assert!(watch.is_some());
            self.leases.push(lease);
        }
    }

    /// Does what the watchdog's task does until `end`.
    fn run(&mut self, end: Instant, weather: Weather<'_>) {
        while self.clock.now() < end {
            let now = self.clock.now();
            self.hear_answers(now);
            let work = self.watches.take_due(now).expect("it is not stopped");
            assert!(work.lost.is_empty(), "{} turns are lost at {now:?}", work.lost.len());
            self.lags.extend(work.lags);
            for batch in work.batches.into_commands() {
                self.send(now, batch, weather);
            }
            let until = self.watches.sleep_until(self.clock.now(), end);
            let answer = self.on_its_way.first_key_value().map_or(end, |((at, _), _)| *at);
            // Timers count in milliseconds, and round up.
            self.clock.set(until.min(answer).max(now + MS));
        }
    }

    fn send(&mut self, now: Instant, batch: RenewalBatch, weather: Weather<'_>) {
        let (time, failure) = weather(now);
        let ttl = batch.turns.first().map(|(_, turn)| turn.ttl()).expect("no batch is empty");
        let remaining = ttl.get();
        let answers = match failure {
            None => Ok(vec![Ok(RenewAnswer::Renewed { remaining }); batch.turns.len()]),
            Some(kind) => Err(StoreError::new(kind, "a storm", "wait")),
        };
        self.sent.push((now, batch.turns.len()));
        let answered = AnsweredBatch { turns: batch.turns, sent_at: now, answers };
        self.on_its_way.insert((now + time, self.sent.len()), answered);
    }

    fn hear_answers(&mut self, now: Instant) {
        while let Some(first) = self.on_its_way.first_entry()
            && first.key().0 <= now
        {
            let lost = first.remove().apply(now, &self.watches);
            assert!(lost.is_empty());
        }
    }

    /// How many turns were renewed in each span of time.
    fn renewed(&self, from: Instant, span: Duration, spans: usize) -> Vec<usize> {
        let mut renewed = vec![0; spans];
        for (at, turns) in &self.sent {
            let nth = at.saturating_since(from).as_nanos() / span.as_nanos();
            if let Some(count) = usize::try_from(nth).ok().and_then(|nth| renewed.get_mut(nth)) {
                *count += turns;
            }
        }
        renewed
    }

    fn all_are_held(&self) -> bool {
        self.leases.iter().all(|lease| lease.is_held())
    }
}

fn ttl(seconds: u64) -> Ttl {
    Ttl::new(SECOND * u32::try_from(seconds).unwrap()).unwrap()
}

fn fine(_: Instant) -> (Duration, Option<StoreErrorKind>) {
    (MS, None)
}
