//! A plain counter on a server that loses it while nobody's connection survives.

use std::time::Duration;

use leasehold::{
    Stamp,
    time::{Clock, SystemClock},
};
use leasehold_testkit::{Event, History, RedisServer, Violation, history::Worker};

use super::scene::{FIRST, SECOND, naive, run};
use crate::support::{
    naive::{NaiveHeld, NaiveLock},
    storage, wait,
};

const TTL: Duration = Duration::from_secs(1);

/// Takes some numbers before and after `save`, and some more after `lose`; says what went wrong.
pub(super) fn damage(
    server: &RedisServer,
    save: impl FnOnce(&RedisServer),
    lose: impl FnOnce(&RedisServer),
) -> String {
    damage_between(server, server, save, lose)
}

/// The same, where another server goes on after the loss.
pub(in crate::faults) fn damage_between(
    server: &RedisServer,
    next: &RedisServer,
    save: impl FnOnce(&RedisServer),
    lose: impl FnOnce(&RedisServer),
) -> String {
    run(async {
        let store = RedisServer::start();
        let gate = storage::gate_at(&store.url());
        let history = History::new();
        let mut before = naive(server, TTL).await;
        take_and_give(&mut before, FIRST, &history).await;
        save(server);
        for _ in 0..3 {
            take_and_give(&mut before, FIRST, &history).await;
        }
        let old = take(&mut before, FIRST, &history).await;
        gate.set("{v}", "old", stamp(&old)).await.expect("the first writer");
        lose(server);

        let mut after = naive(next, TTL).await;
        let new = take(&mut after, SECOND, &history).await;
        let shut_out = gate.set("{v}", "new", stamp(&new)).await;
        assert!(shut_out.is_err(), "the newest holder writes: {shut_out:?}");
        let late = gate.set("{v}", "late", stamp(&old)).await;
        assert!(late.is_ok(), "the late write is refused: {late:?}");
        for _ in 0..4 {
            let released = after.release(&new).await;
            assert!(released.is_ok(), "{released:?}");
            take_and_give(&mut after, SECOND, &history).await;
        }
        let (fell, twice) = count(&history);
        assert!(fell > 0 && twice > 0, "{fell} fell, {twice} were given twice");
        format!("{twice} tokens given twice, {fell} fell; late write accepted, new one refused")
    })
}

fn stamp(held: &NaiveHeld) -> Stamp {
    Stamp::new(held.fence, held.lease)
}

async fn take(lock: &mut NaiveLock, worker: Worker, history: &History) -> NaiveHeld {
    let ends_at = SystemClock.now() + wait::CEILING;
    let held = loop {
        assert!(SystemClock.now() < ends_at, "not within {:?}: a lease", wait::CEILING);
        if let Some(held) = lock.try_acquire().await.expect("the server answers") {
            break held;
        }
        // What the server had forgotten to forget ends by its ttl.
        tokio::time::sleep(Duration::from_millis(2)).await;
    };
    let NaiveHeld { lease, fence, asked_at, .. } = held;
    let granted_at = SystemClock.now();
    history.record(Event::Granted { worker, fence, lease, asked_at, granted_at });
    held
}

async fn take_and_give(lock: &mut NaiveLock, worker: Worker, history: &History) {
    let held = take(lock, worker, history).await;
    lock.release(&held).await.expect("the server answers");
}

/// How many tokens fell, and how many were given twice.
fn count(history: &History) -> (usize, usize) {
    let found = history.check().expect_err("the control came to no harm");
    let count = |kind: fn(&&Violation) -> bool| found.iter().filter(kind).count();
    (
        count(|violation| matches!(violation, Violation::TokenFell { .. })),
        count(|violation| matches!(violation, Violation::SharedToken { .. })),
    )
}
