//! Under a clock of tokio that is paused: locks that follow it, and locks that do not.

use std::{
    future::{IntoFuture, poll_fn},
    pin::pin,
    sync::Arc,
};

use leasehold::{
    LeaseEnd, LockRuntime, LossReason,
    error::AcquireError,
    testing::{Failure, TestStore},
    time::{Clock, SystemClock, TokioClock},
};
use leasehold_testkit::Log;

use crate::support::{lock, millis, secs};

#[tokio::test(start_paused = true)]
async fn waits_and_leases_follow_the_clock_of_tokio() {
    let clock = Arc::new(TokioClock::current());
    let locks = LockRuntime::builder().clock(clock.clone()).embedded().unwrap();
    let held = lock(&locks).acquire().await.unwrap();
    let began = clock.now();
    let error = lock(&locks).acquire().wait(secs(30)).await.unwrap_err();
    let AcquireError::Timeout(timeout) = &error else { panic!("{error}") };
    assert!(timeout.waited >= secs(30) && clock.now() >= began + secs(30), "{error}");

    tokio::time::advance(secs(1)).await;
    let waiting = tokio::spawn(lock(&locks).acquire().wait(secs(7200)).into_future());
    let sleeping = clock.clone();
    sleeping.sleep_until(began + secs(3600)).await;
    assert!(held.is_held() && !waiting.is_finished(), "it is renewed all the while");
    held.release().await.unwrap();
    waiting.await.unwrap().unwrap().release().await.unwrap();
}

#[tokio::test(start_paused = true)]
async fn an_outage_of_the_store_of_tests_follows_it_too() {
    let clock = Arc::new(TokioClock::current());
    let store = TestStore::new(clock.clone());
    let locks = LockRuntime::builder().clock(clock).on_store(Arc::new(store.clone())).unwrap();
    let held = lock(&locks).acquire().await.unwrap();
    store.fail(Failure::Unreachable);
    assert_eq!(held.lost().await, LeaseEnd::Lost(LossReason::Expired));
    assert!(!locks.health().is_ready());
    store.recover();
    drop(lock(&locks).acquire().wait(secs(60)).outage_patience(secs(60)).await.unwrap());
}

/// Without a word about the clock, the locks keep to the machine's: they take real time, and no processor,
/// and the log says what to write.
#[tokio::test(start_paused = true)]
async fn locks_on_the_clock_of_the_machine_take_their_time_and_say_why() {
    let (log, _collecting) = Log::as_services_see_it();
    let locks = LockRuntime::embedded().unwrap();
    let _held = lock(&locks).acquire().await.unwrap();
    let began = SystemClock.now();
    let mut waiting = pin!(lock(&locks).acquire().wait(millis(300)).into_future());
    let mut polls = 0;
    let ended = poll_fn(|cx| {
        polls += 1;
        waiting.as_mut().poll(cx)
    });
    assert!(matches!(ended.await, Err(AcquireError::Timeout(_))));
    assert!(SystemClock.now() >= began + millis(300));
    assert!(polls < 20, "{polls} polls keep a core busy");
    let told = log.with("tokio's clock ran ahead");
    assert!(told.len() == 1 && told[0].contains("TokioClock::current()"), "{told:?}");
}
