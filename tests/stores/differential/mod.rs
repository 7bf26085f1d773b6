//! Random sequences of commands get the same answers from both stores, and their runtimes hear
//! the same.
//!
//! Every ttl is a multiple of half an hour and so is every step of time, which ages the keys of
//! the server as it moves the clock of the memory; claim windows end a quarter of an hour beside
//! them. So the answers of the two stay apart by no more than the real time that a sequence takes.
//! Tokens are compared by the order in which their blocks appeared, for the stores have different
//! clocks. A counter is retained for 75 minutes: it is lost now and then while its lease stands.

mod answer;
mod op;
mod side;
mod tokens;

use std::{sync::Arc, time::Duration};

use leasehold_core::{FencePolicy, FenceSettings, LockName, store::Push};
use leasehold_testkit::contract::{MemorySubject, PushLog, RedisSubject};
use proptest::{
    collection::vec,
    test_runner::{Config, FileFailurePersistence, TestRunner},
};
use tokio::runtime::{Builder, Runtime};

use self::{
    op::{Op, op},
    side::{Side, listen},
};

/// Plays a sequence on an empty memory and an emptied server.
fn play(
    runtime: &Runtime,
    (redis, pushes): (&RedisSubject, &[Arc<PushLog>; 3]),
    fencing: FenceSettings,
    ops: &[Op],
) {
    runtime.block_on(async {
        redis.server().flush_all();
        for pushes in pushes {
            pushes.drain();
        }
        let memory = MemorySubject::new(fencing);
        let mut memory = Side::new(&memory, listen(&memory).await);
        let mut redis = Side::new(redis, pushes.clone());
        for (step, op) in ops.iter().enumerate() {
            let (expected, found) = (memory.play(op).await, redis.play(op).await);
            assert!(expected.is_like(&found), "step {step}, {op:?}: {expected:?} and {found:?}");
            heard_alike(&mut memory, &mut redis, &format!("step {step}, {op:?}")).await;
        }
    });
}

/// Expects the server to tell what the memory told, in the same order for each name; what it tells
/// too much is heard too soon the next time.
async fn heard_alike(memory: &mut Side<'_>, redis: &mut Side<'_>, what: &str) {
    for runtime in 0..memory.pushes.len() {
        let mut told = memory.pushes[runtime].drain();
        let mut heard = Vec::new();
        for _ in &told {
            heard.push(redis.pushes[runtime].next().await);
        }
        // The names of a batch go to the server on several connections.
        told.sort_by_key(about);
        heard.sort_by_key(about);
        for (expected, found) in told.iter().zip(&heard) {
            let (expected, found) = (memory.heard(expected), redis.heard(found));
            assert!(expected.is_like(&found), "after {what}: {expected:?} and {found:?}");
        }
    }
}

/// The name that a push is about.
fn about(push: &Push) -> Option<LockName> {
    match push {
        Push::Granted { name, .. }
        | Push::ForceReleased { name, .. }
        | Push::Wanted { name, .. } => Some(name.clone()),
        Push::Unexpected | Push::Unreadable | Push::Listening => None,
    }
}

fn stores_agree(policy: FencePolicy) {
    let fencing = FenceSettings::default().policy(policy);
    let fencing = fencing.retention(Duration::from_secs(75 * 60)).expect("in range");
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let redis = runtime.block_on(RedisSubject::new(fencing.clone()));
    let pushes = runtime.block_on(listen(&redis));
    let regressions = FileFailurePersistence::Direct("tests/stores/differential.regressions");
    let mut runner = TestRunner::new(Config {
        failure_persistence: Some(Box::new(regressions)),
        ..Config::default()
    });
    let outcome = runner.run(&vec(op(), 1..80), |ops| {
        play(&runtime, (&redis, &pushes), fencing.clone(), &ops);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn both_stores_give_the_same_answers() {
    stores_agree(FencePolicy::TimeFloor);
}

#[test]
fn both_stores_give_the_same_answers_under_a_plain_counter() {
    stores_agree(FencePolicy::Counter);
}
