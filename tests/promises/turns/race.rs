use std::{
    fmt,
    sync::{
        Arc, Mutex,
        atomic::{AtomicI64, Ordering},
    },
    task::Poll,
    time::Duration,
};

use leasehold::{
    Guard, LeaseState, LockRuntime, LossReason,
    time::{Clock, Instant},
};
use leasehold_core::Sleep;
use leasehold_testkit::{CommandKind, Fault, Gate, ManualClock, Rule};

use crate::support::{World, lock, millis, poll_once, secs, warm_up};

/// P5: a task that takes its lease between a renewal's answer and what follows from it is told.
#[tokio::test]
async fn a_loss_is_told_to_who_takes_the_turn_meanwhile() {
    const SEEDS: u64 = 400;
    for look in [1, 2] {
        let mut found = None;
        for seed in 1..SEEDS {
            found = hand_over_at(look, seed).await;
            if found.is_some() {
                break;
            }
        }
        let HandedOver { world, locks, next } =
            found.unwrap_or_else(|| panic!("look {look}: no seed renews in time"));
        world.pass(millis(20)).await;
        let state = next.lease().state();
        assert_eq!(state, LeaseState::Lost(LossReason::DataLost), "look {look}");
        assert!(world.holder(World::NAME).await.is_none(), "look {look}: the server forgot it");
        assert_eq!(locks.footprint().watched, 0, "look {look}: nothing is left to renew");
    }
}

/// A runtime whose turn was found gone while a task took it over.
struct HandedOver {
    world: World,
    locks: LockRuntime,
    next: Guard,
}

/// Hands a turn over at the n-th look at the clock after a renewal found it gone; nothing if the
/// seed has no renewal while the turn may still be handed over.
async fn hand_over_at(look: i64, seed: u64) -> Option<HandedOver> {
    let clock = HookedClock::default();
    let shown = clock.clone();
    let world = World::on_clock(&clock.manual, move |_| Arc::new(shown.clone()));
    let locks = world.start(world.builder(seed).ttl(millis(200)));
    warm_up(&world, &locks).await;
    let first = lock(&locks).acquire().await.unwrap();
    let mut next = Box::pin(lock(&locks).acquire().wait(secs(60)));
    assert!(poll_once(next.as_mut()).is_pending());
    world.memory().clear();
    let gate = Gate::new();
    world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Renew));
    if !is_renewed_within_8_millis(&world).await {
        return None;
    }
    let taken = Arc::new(Mutex::new(None));
    let put = Arc::clone(&taken);
    clock.at_look(look, move || {
        drop(first);
        if let Poll::Ready(guard) = poll_once(next.as_mut()) {
            *put.lock().unwrap() = Some(guard.unwrap());
        }
    });
    gate.open();
    world.settle().await;
    let next = taken.lock().unwrap().take();
    let next = next.unwrap_or_else(|| panic!("look {look}, seed {seed}: the next took nothing"));
    Some(HandedOver { world, locks, next })
}

/// Waits for a renewal, for less than a turn lasts that began alone.
async fn is_renewed_within_8_millis(world: &World) -> bool {
    for _ in 0..8 {
        if world.store.executed(CommandKind::Renew) > 0 {
            return true;
        }
        world.pass(millis(1)).await;
    }
    world.store.executed(CommandKind::Renew) > 0
}

type Hook = Box<dyn FnOnce() + Send>;

/// A manual clock that lets something happen at a certain look at it.
#[derive(Clone, Default)]
struct HookedClock {
    manual: ManualClock,
    looks: Arc<AtomicI64>,
    hook: Arc<Mutex<Option<Hook>>>,
}

impl HookedClock {
    /// Does something at the n-th look from now on.
    fn at_look(&self, n: i64, hook: impl FnOnce() + Send + 'static) {
        *self.hook.lock().unwrap() = Some(Box::new(hook));
        self.looks.store(n, Ordering::SeqCst);
    }
}

impl Clock for HookedClock {
    fn now(&self) -> Instant {
        if self.looks.fetch_sub(1, Ordering::SeqCst) == 1 {
            // The hook looks at the clock too: not under the lock.
            let hook = self.hook.lock().unwrap().take();
            if let Some(hook) = hook {
                hook();
            }
        }
        self.manual.now()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        self.manual.sleep_until(at)
    }

    fn unix_time(&self) -> Duration {
        self.manual.unix_time()
    }
}

impl fmt::Debug for HookedClock {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("HookedClock").finish_non_exhaustive()
    }
}
