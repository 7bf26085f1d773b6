use std::{
    future::{pending, poll_fn},
    panic::AssertUnwindSafe,
    pin::pin,
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicUsize, Ordering},
    },
    task::Poll,
};

use leasehold::{
    LossReason,
    error::{LeaseLost, WithError},
};
use leasehold_testkit::{CommandKind, Fault, ManualClock, Rule};

use crate::support::{
    TimerlessClock, World, config, definite, millis, on_every_store, poll_once, secs,
};

const NAME: &str = World::NAME;

type Outcome<T> = Result<T, WithError<String>>;

/// Tells when it is dropped.
struct Dropped(Arc<AtomicBool>);

impl Drop for Dropped {
    fn drop(&mut self) {
        self.0.store(true, Ordering::Relaxed);
    }
}

on_every_store! {
    async fn the_value_comes_back_and_the_lock_is_free(world: World) {
        let locks = world.runtime(1);
        let lock = locks.lock(NAME).unwrap();
        let line = &world;
        let outcome: Outcome<_> = lock.with(async |lease| {
            let holder = line.holder(NAME).await.unwrap();
            assert_eq!((holder.id, holder.fence), (lease.id(), lease.fence()));
            assert!(lease.is_held());
            Ok(7)
        }).await;
        assert_eq!(outcome.unwrap(), 7);
        assert!(world.holder(NAME).await.is_none());
    }

    async fn the_bodys_error_wins_over_that_of_the_release(world: World) {
        let locks = world.runtime(1);
        let lock = locks.lock(NAME).unwrap();
        world.store.inject(Rule::new(Fault::Fail(config())).on(CommandKind::Release));
        let outcome: Outcome<()> = lock.with(async |_| Err("no such order".into())).await;
        assert!(matches!(outcome, Err(WithError::Body(error)) if error == "no such order"));
        assert_eq!(world.store.sent(CommandKind::Release), 1);
    }

    async fn a_failed_release_does_not_undo_the_work(world: World) {
        let locks = world.runtime(1);
        let lock = locks.lock(NAME).unwrap();
        world.store.inject(Rule::new(Fault::Fail(config())).on(CommandKind::Release));
        let outcome: Outcome<_> = lock.with(async |_| Ok(7)).await;
        assert_eq!(outcome.unwrap(), 7);
    }

    async fn a_panic_in_the_body_releases_and_goes_on(world: World) {
        let locks = world.runtime(1);
        let lock = locks.lock(NAME).unwrap();
        let task = tokio::spawn(async move {
            let _: Outcome<()> = lock.with(async |_| panic!("as the test wants it")).await;
        });
        assert!(task.await.unwrap_err().is_panic());
        world.until_free(NAME).await;
        // The control: without a panic the body runs on and the lock stays closed.
        let lock = locks.lock(NAME).unwrap();
        let task = tokio::spawn(async move {
            let _: Outcome<()> = lock.with(async |_| pending().await).await;
        });
        world.until("it is held", async || world.holder(NAME).await.is_some()).await;
        task.abort();
        world.until_free(NAME).await;
    }

    async fn with_says_when_the_lock_was_not_acquired(world: World) {
        let (holder, locks) = (world.runtime(1), world.another_line().runtime(2));
        let guard = holder.lock(NAME).unwrap().acquire().await.unwrap();
        let called = AtomicBool::new(false);
        let body = async |_| {
            called.store(true, Ordering::Relaxed);
            Ok(())
        };
        let lock = locks.lock(NAME).unwrap();
        let outcome: Outcome<()> = lock.acquire().wait(secs(0)).with(body).await;
        assert!(matches!(outcome, Err(WithError::Acquire(_))), "{outcome:?}");
        assert!(!called.load(Ordering::Relaxed));
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn the_body_is_dropped_at_the_loss() {
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::Fail(definite())).on(CommandKind::Renew).always());
    let dropped = Arc::new(AtomicBool::new(false));
    let (lock, witness) = (locks.lock(NAME).unwrap(), Arc::clone(&dropped));
    let task = tokio::spawn(async move {
        let body = async |_| {
            let _dropped = Dropped(witness);
            pending::<Result<(), String>>().await
        };
        lock.with(body).await
    });
    world.pass(millis(9_899)).await;
    assert!(!dropped.load(Ordering::Relaxed));
    world.pass(millis(1)).await;
    assert!(dropped.load(Ordering::Relaxed));
    let outcome = task.await.unwrap();
    assert!(
        matches!(&outcome, Err(WithError::Lost(LeaseLost { lock, reason: LossReason::Expired, .. }))
            if lock.as_str() == NAME),
        "{outcome:?}"
    );
    // It gave the rest of the server's lease back.
    assert!(world.holder(NAME).await.is_none());
}

/// A pause before a poll: the timers have not come round, but the clock tells.
#[tokio::test]
async fn the_body_is_not_polled_after_a_pause() {
    let manual = ManualClock::new();
    let world = World::on_clock(&manual, |manual| Arc::new(TimerlessClock(manual)));
    let locks = world.runtime(1);
    let lock = locks.lock(NAME).unwrap();
    let polls = AtomicUsize::new(0);
    let body = |_| {
        poll_fn(|_| {
            polls.fetch_add(1, Ordering::Relaxed);
            Poll::<Result<(), String>>::Pending
        })
    };
    let mut running = pin!(lock.with(body));
    for n in 1..=3 {
        assert!(poll_once(running.as_mut()).is_pending());
        assert_eq!(polls.load(Ordering::Relaxed), n);
    }
    manual.advance(millis(9_900));
    let Poll::Ready(outcome) = poll_once(running.as_mut()) else { panic!("the lease is lost") };
    assert!(matches!(outcome, Err(WithError::Lost(LeaseLost { reason: LossReason::Expired, .. }))));
    assert_eq!(polls.load(Ordering::Relaxed), 3);
}

/// The control: code that relies on a timer polls the body once more under a lost lease.
#[tokio::test]
async fn a_timer_alone_would_poll_the_body_after_a_pause() {
    let manual = ManualClock::new();
    let world = World::on_clock(&manual, |manual| Arc::new(TimerlessClock(manual)));
    let guard = world.runtime(1).lock(NAME).unwrap().acquire().await.unwrap();
    let polls = AtomicUsize::new(0);
    let timer = leasehold::time::Clock::sleep_until(
        &TimerlessClock(manual.clone()),
        ManualClock::START + guard.remaining(),
    );
    let mut running = pin!(async {
        tokio::select! {
            biased;
            () = timer => {}
            () = poll_fn(|_| {
                polls.fetch_add(1, Ordering::Relaxed);
                Poll::Pending
            }) => {}
        }
    });
    assert!(poll_once(running.as_mut()).is_pending());
    manual.advance(millis(9_900));
    assert!(poll_once(running.as_mut()).is_pending());
    assert!(!guard.is_held());
    assert_eq!(polls.load(Ordering::Relaxed), 2);
}

/// Dropping the whole call drops the body and releases.
#[tokio::test]
async fn a_cancelled_with_releases() {
    let world = World::new();
    let locks = world.runtime(1);
    let lock = locks.lock(NAME).unwrap();
    {
        let mut running = Box::pin(lock.with(async |_| pending::<Result<(), String>>().await));
        assert!(poll_once(running.as_mut()).is_pending());
        assert!(world.holder(NAME).await.is_some());
    }
    world.until_free(NAME).await;
    let caught = std::panic::catch_unwind(AssertUnwindSafe(|| drop(lock)));
    assert!(caught.is_ok());
}
