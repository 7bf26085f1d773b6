use std::time::Duration;

use leasehold::{
    LeaseState, LockRuntime,
    error::AcquireError,
    time::{Clock, Instant},
};
use leasehold_core::Entropy;
use leasehold_testkit::{
    CommandKind, Event, Fault, FaultyStore, Gate, History, ManualClock, Rule, SeededEntropy,
    faulty::{PushFault, PushRule},
};

use crate::support::{Process, World, millis, secs, step};

/// What two rivals of one run believed, and what they would have believed by another rule.
pub(crate) struct Run {
    pub(crate) believed: History,
    /// The same leases, each valid for its ttl less the margin from the *reply* on.
    pub(crate) believed_from_reply: History,
}

const TTL: Duration = Duration::from_secs(1);
const MARGIN: Duration = Duration::from_millis(10);
const ROUNDS: usize = 4;

/// Two processes contend for one name, while a seed decides what goes wrong.
pub(crate) fn run(seed: u64) -> Run {
    let world = World::new();
    let chaos = SeededEntropy::new(seed ^ 0xc4a0_5000);
    let lines = [world.clone(), world.another_line()];
    let mut processes = [Process::new(), Process::new()];
    let run = Run { believed: History::new(), believed_from_reply: History::new() };
    let mut troubles = Vec::new();
    let mut workers = Vec::new();
    for (number, (line, process)) in lines.iter().zip(&processes).enumerate() {
        inject_push(&chaos, &line.store);
        troubles.extend((0..6).map(|_| Trouble::inject(&chaos, &line.store)));
        let number = u64::try_from(number).unwrap();
        let locks = process.within(|| line.runtime(seed * 2 + number + 1));
        let worker = Worker {
            number,
            locks,
            clock: world.clock().clone(),
            entropy: SeededEntropy::new(seed * 7 + number),
            run: Run {
                believed: run.believed.clone(),
                believed_from_reply: run.believed_from_reply.clone(),
            },
        };
        workers.push(process.spawn(worker.work()));
    }
    let courier = Process::new();
    for stop in 0..50_000 {
        let now = world.clock().now();
        for process in &processes {
            process.run(now);
        }
        if workers.iter().all(tokio::task::JoinHandle::is_finished) {
            return run;
        }
        for trouble in &troubles {
            trouble.look(now);
        }
        if chaos.fraction() < 0.01 {
            let victim = usize::from(chaos.fraction() < 0.5);
            processes[victim].pause_until(now + between(&chaos, 100, 2_000));
        }
        if stop % 32 == 0 {
            for line in &lines {
                line.store.deliver_pushes();
                let store = line.store.clone();
                drop(courier.spawn(async move { drop(store.deliver_late().await) }));
            }
            courier.run(now);
        }
        step(world.clock(), &processes, millis(20));
    }
    panic!("seed {seed} does not come to an end");
}

/// What goes wrong with the grants that a process is told of.
fn inject_push(chaos: &SeededEntropy, store: &FaultyStore) {
    for fault in [PushFault::Lose, PushFault::Delay, PushFault::Duplicate] {
        store.inject_push(PushRule::new(fault).nth(1 + chaos.bits() % 4));
    }
}

fn between(entropy: &SeededEntropy, least: u64, most: u64) -> Duration {
    millis(least) + millis(most.saturating_sub(least)).mul_f64(entropy.fraction())
}

/// A fault, and the instant at which what it delayed goes on.
struct Trouble {
    gate: Gate,
    opens: Instant,
}

impl Trouble {
    fn inject(chaos: &SeededEntropy, store: &FaultyStore) -> Self {
        let gate = Gate::new();
        let fault = match chaos.bits() % 8 {
            0 => Fault::LoseRequest,
            1 => Fault::LoseReply,
            2 => Fault::LateRequest,
            3 => Fault::Duplicate,
            4 => Fault::Delay(gate.clone()),
            _ => Fault::DelayReply(gate.clone()),
        };
        let kind = match chaos.bits() % 8 {
            0 => CommandKind::Renew,
            1 => CommandKind::Release,
            2 => CommandKind::Withdraw,
            3 | 4 => CommandKind::Heartbeat,
            _ => CommandKind::Acquire,
        };
        store.inject(Rule::new(fault).on(kind).nth(1 + chaos.bits() % 6));
        Self { gate, opens: ManualClock::START + between(chaos, 0, 6_000) }
    }

    fn look(&self, now: Instant) {
        if now >= self.opens {
            self.gate.open();
        }
    }
}

struct Worker {
    number: u64,
    locks: LockRuntime,
    clock: ManualClock,
    entropy: SeededEntropy,
    run: Run,
}

impl Worker {
    async fn work(self) {
        for _ in 0..ROUNDS {
            self.sleep(between(&self.entropy, 0, 100)).await;
            self.round().await;
        }
    }

    async fn round(&self) {
        let asked_at = self.clock.now();
        self.tell(Event::Asked { worker: self.number, at: asked_at });
        let lock = self.locks.lock(World::NAME).unwrap();
        // Half of the leases are fixed: what is believed of them follows from the grant alone.
        let renews = self.entropy.fraction() < 0.5;
        let guard = match lock.acquire().ttl(TTL).renew(renews).wait(secs(5)).await {
            Ok(guard) => guard,
            Err(AcquireError::Timeout(_)) => return,
            Err(error) => panic!("{error}"),
        };
        let (lease, fence, granted_at) = (guard.id(), guard.fence(), self.clock.now());
        let granted = Event::Granted { worker: self.number, fence, lease, asked_at, granted_at };
        self.tell(granted);
        let until = granted_at + TTL.saturating_sub(MARGIN);
        self.tell_control(Event::BelievedUntil { lease, until });
        let leaves = granted_at + between(&self.entropy, 10, 1_500);
        loop {
            let now = self.clock.now();
            match guard.lease().state() {
                LeaseState::Held { until } => {
                    self.run.believed.record(Event::BelievedUntil { lease, until });
                }
                LeaseState::Lost(_) => {
                    self.run.believed.record(Event::Lost { lease, at: now });
                    // By the other rule it would go on, so its guard stays that long.
                    while self.clock.now() < until {
                        self.sleep(until.saturating_since(self.clock.now())).await;
                    }
                    return;
                }
                LeaseState::Released => unreachable!("its guard is here"),
            }
            if now >= leaves {
                self.tell(Event::Released { lease, at: now });
                drop(guard.release().await);
                return;
            }
            self.sleep(millis(15)).await;
        }
    }

    async fn sleep(&self, time: Duration) {
        self.clock.sleep_until(self.clock.now() + time).await;
    }

    fn tell(&self, event: Event) {
        self.run.believed.record(event);
        self.tell_control(event);
    }

    fn tell_control(&self, event: Event) {
        self.run.believed_from_reply.record(event);
    }
}
