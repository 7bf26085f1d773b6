use std::{
    sync::{Arc, Mutex},
    time::Duration,
};

use leasehold_core::{Clock, Instant};
use leasehold_testkit::ManualClock;

const SECOND: Duration = Duration::from_secs(1);

#[test]
fn time_stands_still_until_it_is_moved() {
    let clock = ManualClock::new();
    assert_eq!((clock.now(), clock.unix_time()), (ManualClock::START, ManualClock::EPOCH));
    assert!(clock.now() > Instant::default());
    clock.advance(SECOND);
    clock.set(clock.now() + SECOND);
    assert_eq!(clock.now(), ManualClock::START + 2 * SECOND);
    assert_eq!(clock.unix_time(), ManualClock::EPOCH + 2 * SECOND);
}

#[test]
fn unix_time_steps_alone() {
    let clock = ManualClock::new();
    clock.step_unix(-1_500);
    assert_eq!(clock.unix_time(), ManualClock::EPOCH.checked_sub(SECOND * 3 / 2).unwrap());
    clock.step_unix(2_000);
    assert_eq!(clock.unix_time(), ManualClock::EPOCH + SECOND / 2);
    assert_eq!(clock.now(), ManualClock::START);
}

#[test]
#[should_panic(expected = "cannot be set back")]
fn a_clock_does_not_run_backwards() {
    let clock = ManualClock::new();
    clock.set(clock.now() - SECOND);
}

#[tokio::test]
async fn sleepers_wake_exactly_when_time_reaches_them() {
    let clock = ManualClock::new();
    let sleeper = tokio::spawn(clock.sleep_until(clock.now() + SECOND));
    tokio::task::yield_now().await;
    assert_eq!(clock.next_wake(), Some(clock.now() + SECOND));
    clock.advance(Duration::from_nanos(999_999_999));
    tokio::task::yield_now().await;
    assert!(!sleeper.is_finished());
    clock.advance(Duration::from_nanos(1));
    sleeper.await.unwrap();
    assert_eq!(clock.sleepers(), 0);
}

#[tokio::test]
async fn a_dropped_sleep_is_forgotten() {
    let clock = ManualClock::new();
    let mut sleep = clock.sleep_until(clock.now() + SECOND);
    assert!(poll_once(&mut sleep).await.is_none());
    assert_eq!(clock.sleepers(), 1);
    drop(sleep);
    assert_eq!(clock.sleepers(), 0);
    clock.sleep_until(clock.now()).await;
}

#[tokio::test]
async fn travel_stops_at_every_timer() {
    let clock = ManualClock::new();
    let ticks = Arc::new(Mutex::new(Vec::new()));
    tokio::spawn({
        let (clock, ticks) = (clock.clone(), Arc::clone(&ticks));
        async move {
            for _ in 0..10 {
                clock.sleep_until(clock.now() + 3 * SECOND).await;
                ticks.lock().unwrap().push(clock.now().saturating_since(ManualClock::START));
            }
        }
    });
    clock.travel(10 * SECOND).await;
    assert_eq!(clock.now(), ManualClock::START + 10 * SECOND);
    assert_eq!(*ticks.lock().unwrap(), [3 * SECOND, 6 * SECOND, 9 * SECOND]);
}

/// Polls a future once.
async fn poll_once<F: Future + Unpin>(future: &mut F) -> Option<F::Output> {
    tokio::select! {
        biased;
        output = future => Some(output),
        () = std::future::ready(()) => None,
    }
}
