use std::thread;

use leasehold_testkit::{RedisCluster, cluster::slot_of};

use crate::{
    faults::server::scene::{self, LEASE},
    support::{
        crew::{Crew, Plan},
        matrix::row,
        naive::NaiveLock,
        raw,
    },
};

row! {
    slot_migration: protected, control;
    fault: "the slot of a lock moves to another master and on, five times, under processes at work",
    right: "leases and places move along: no lease is lost, no write refused",
    control: "a client that stays with the master of the start",
}

/// How often the control tries, half-way and after the move.
const TRIES: usize = 10;

fn protected() -> String {
    let cluster = RedisCluster::start();
    let owner = RedisCluster::owner_of(LEASE);
    let mut crew = Crew::start(&Plan::PROTECTED, &cluster.url());
    let moves = [1, 2, 0, 1].map(|by| (owner + by) % cluster.masters().len());
    for to in moves {
        crew.work(20);
        cluster.migrate(slot_of(LEASE), to);
    }
    crew.work(20);
    // Half-way: the keys are there, and the slot is not.
    crew.halt(0);
    cluster.begin_migration(slot_of(LEASE), owner);
    cluster.move_keys(slot_of(LEASE));
    thread::sleep(Plan::PROTECTED.ttl);
    cluster.end_migration(slot_of(LEASE));
    crew.resume(0);
    crew.work(20);
    let finished = crew.finish();
    let summary = finished.history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
    assert_eq!((summary.lost, summary.refused), (0, 0), "{summary:?}");
    scene::leaves_nothing(&cluster.masters()[owner]);
    format!("{} moves: {}", moves.len() + 1, finished.right())
}

fn control() -> String {
    scene::run(async {
        let cluster = RedisCluster::start();
        let owner = RedisCluster::owner_of("naive:{a}");
        let raw = raw::connect(&cluster.masters()[owner].url()).await;
        let mut lock = NaiveLock::new(raw, "a", Plan::NAIVE.ttl);
        let slot = slot_of(&lock.key());
        let held = lock.try_acquire().await.expect("an answer").expect("a free lock");
        lock.release(&held).await.expect("an answer");
        cluster.begin_migration(slot, (owner + 1) % cluster.masters().len());
        cluster.move_keys(slot);
        fails(&mut lock, "ASK").await;
        cluster.end_migration(slot);
        fails(&mut lock, "MOVED").await;
        format!("{0} of {0} tries failed, with the lock free at its new master", 2 * TRIES)
    })
}

async fn fails(lock: &mut NaiveLock, why: &str) {
    for _ in 0..TRIES {
        let error = lock.try_acquire().await.expect_err("the control came to no harm");
        assert_eq!(error.code(), Some(why), "{error}");
    }
}
