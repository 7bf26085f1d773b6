//! The list of the locks that are held, and what it says of them.

use std::sync::Arc;

use leasehold::{
    ListedLock, LockRuntime,
    error::{ListError, NameError, StoreError, StoreErrorKind},
    store::{FenceSettings, MemoryStore},
};
use leasehold_core::LockStore;
use leasehold_testkit::{CommandKind, Fault, Rule};

use crate::support::{World, millis, on_every_store, secs};

/// All locks of a list, in the order of their names.
async fn listed(locks: &LockRuntime, pattern: &str) -> Vec<ListedLock> {
    let (mut list, mut found) = (locks.list(pattern).unwrap(), Vec::new());
    while let Some(lock) = list.next().await {
        found.push(lock.unwrap());
    }
    found.sort_by(|one, other| one.name.cmp(&other.name));
    found
}

/// Lets one command of a kind fail.
fn failing(kind: StoreErrorKind, command: CommandKind) -> Rule {
    Rule::new(Fault::Fail(StoreError::new(kind, "it fails", "try again"))).on(command)
}

fn names(found: &[ListedLock]) -> Vec<&str> {
    found.iter().map(|lock| lock.name.as_str()).collect()
}

on_every_store! {
    async fn every_held_lock_is_listed_with_its_holder_and_who_waits(world: World) {
        let (locks, other) = (world.runtime(1), world.another_line().runtime(2));
        assert!(listed(&locks, "*").await.is_empty());
        let mut guards = Vec::new();
        for name in ["a/1", "a/2", "b/1", "b/2", "[a]"] {
            guards.push(locks.lock(name).unwrap().acquire().await.unwrap());
        }
        let waiting = tokio::spawn(other.lock("a/2").unwrap().acquire());
        let line = world.clone();
        let is_queued = async || line.holder("a/2").await.is_some_and(|held| !held.waiters.is_empty());
        world.until("it waits", is_queued).await;

        let found = listed(&other, "*").await;
        assert_eq!(names(&found), ["[a]", "a/1", "a/2", "b/1", "b/2"]);
        for lock in &found {
            let guard = guards.iter().find(|guard| *guard.name() == lock.name).unwrap();
            assert_eq!((lock.lease.id, lock.lease.fence), (guard.id(), guard.fence()));
            let waiters = usize::from(lock.name.as_str() == "a/2");
            assert_eq!(lock.lease.waiters.len(), waiters, "{lock:?}");
        }
        assert_eq!(names(&listed(&other, "a/*").await), ["a/1", "a/2"]);
        assert_eq!(names(&listed(&other, r"\[a]").await), ["[a]"]);
        assert_eq!(names(&listed(&other, "?/1").await), ["a/1", "b/1"]);

        for guard in guards.drain(..).filter(|guard| guard.name().as_str() != "a/2") {
            guard.release().await.unwrap();
        }
        waiting.await.unwrap().unwrap().release().await.unwrap();
        assert!(listed(&other, "*").await.is_empty(), "what is free is not listed");
    }
}

#[tokio::test]
async fn a_lock_that_is_kept_closed_or_idle_is_listed_as_such() {
    let world = World::new();
    let locks = world.start(world.builder(1).keep_idle(secs(5)));
    let closed = locks.lock("closed").unwrap();
    closed.acquire().min_hold(secs(60)).await.unwrap().release().await.unwrap();
    let idle = locks.lock("idle").unwrap();
    for _ in 0..2 {
        idle.acquire().await.unwrap().release().await.unwrap();
    }
    let found = listed(&locks, "*").await;
    assert_eq!(names(&found), ["closed", "idle"]);
    assert_eq!([found[0].lease.kept, found[0].lease.idle], [true, false]);
    assert_eq!([found[1].lease.kept, found[1].lease.idle], [false, true]);
    let other = world.runtime(2);
    assert!(!listed(&other, "idle").await[0].lease.idle, "others do not know");
}

#[tokio::test]
async fn since_when_a_process_waits_is_told() {
    let world = World::new();
    let (locks, other) = (world.runtime(1), world.runtime(2));
    let _guard = locks.lock("a").unwrap().acquire().await.unwrap();
    world.pass(secs(2)).await;
    let waiting = tokio::spawn(other.lock("a").unwrap().acquire());
    world.pass(secs(7)).await;
    let found = listed(&locks, "*").await;
    let lease = &found[0].lease;
    assert_eq!((lease.held_for, lease.waiters[0].waiting_for), (secs(9), secs(7)));
    assert!(lease.waiters[0].silent_for < secs(4), "it was heard meanwhile");
    waiting.abort();
}

#[tokio::test]
async fn a_list_that_fails_says_so_and_ends() {
    let world = World::new();
    let locks = world.runtime(1);
    let _guard = locks.lock("a").unwrap().acquire().await.unwrap();
    world.store.inject(failing(StoreErrorKind::Config, CommandKind::Scan));
    let mut list = locks.list("*").unwrap();
    let failed = list.next().await.unwrap().unwrap_err();
    assert!(matches!(&failed, ListError::Ended(error) if error.kind() == StoreErrorKind::Config));
    assert!(failed.to_string().starts_with("the list is not complete: "), "{failed}");
    assert!(list.next().await.is_none());
    // One lock that cannot be read is missing, and no other.
    let _other = locks.lock("b").unwrap().acquire().await.unwrap();
    world.store.inject(failing(StoreErrorKind::Corrupt, CommandKind::Inspect));
    let mut list = locks.list("*").unwrap();
    let failed = list.next().await.unwrap().unwrap_err();
    assert!(matches!(failed, ListError::Lock(_)), "{failed}");
    assert_eq!(list.next().await.unwrap().unwrap().name.as_str(), "b");
    assert!(list.next().await.is_none());
}

#[tokio::test]
async fn a_list_sends_nothing_until_it_is_polled_and_goes_on_after_a_dropped_call() {
    let world = World::new();
    let locks = world.runtime(1);
    let mut guards = Vec::new();
    for n in 0..40 {
        guards.push(locks.lock(format!("{n:02}")).unwrap().acquire().await.unwrap());
    }
    let mut list = locks.list("*").unwrap();
    world.pass(secs(1)).await;
    assert_eq!(world.store.sent(CommandKind::Scan), 0);
    world.slow_down(CommandKind::Inspect, millis(1));
    let mut found = 0;
    loop {
        // Dropped at each of its first polls.
        let next = crate::support::at_most_polls(1, list.next()).await;
        match next {
            Some(Some(lock)) => found += usize::from(lock.is_ok()),
            Some(None) => break,
            None => world.pass(millis(1)).await,
        }
    }
    assert_eq!((found, world.store.sent(CommandKind::Inspect)), (40, 40));
}

#[tokio::test]
async fn what_is_no_pattern_is_refused_before_anything_is_sent() {
    let locks = World::new().runtime(1);
    for pattern in ["", "[", "a\\", "[]"] {
        let error = locks.list(pattern).unwrap_err();
        assert!(matches!(error, NameError::Pattern { .. }), "{error}");
    }
}

/// A store of many locks is read by the page; the embedded one has one page.
#[tokio::test]
async fn very_many_locks_are_listed_once_each() {
    let world = World::new();
    let memory: Arc<dyn LockStore> =
        Arc::new(MemoryStore::new(Arc::new(world.clock().clone()), FenceSettings::default()));
    let locks = world.builder(1).on_store(memory).unwrap();
    let mut guards = Vec::new();
    for n in 0..1_000 {
        guards.push(locks.lock(format!("{n:04}")).unwrap().acquire().await.unwrap());
    }
    let found = listed(&locks, "*").await;
    assert!(found.iter().map(|lock| &lock.name).eq(guards.iter().map(|guard| guard.name())));
}
