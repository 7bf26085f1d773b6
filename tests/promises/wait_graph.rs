//! Who waits for whom: between processes as Redis has it, within a process by its owners.

use std::time::Duration;

use leasehold::{
    Guard, LockName, LockRuntime, Owner,
    error::{AcquireError, StoreError, StoreErrorKind, WaitTimeout},
    graph::{Certainty, Cycle},
};
use leasehold_testkit::{CommandKind, Fault, Rule};
use tokio::task::JoinHandle;

use crate::support::{World, on_every_store, secs};

type Waiting = JoinHandle<Result<Guard, AcquireError>>;

fn waits(locks: &LockRuntime, name: &str, owner: Option<&Owner>, wait: Duration) -> Waiting {
    let acquire = locks.lock(name).unwrap().acquire().wait(wait);
    tokio::spawn(match owner {
        Some(owner) => acquire.owner(owner),
        None => acquire,
    })
}

async fn held(locks: &LockRuntime, name: &str, owner: &Owner) -> Guard {
    locks.lock(name).unwrap().acquire().owner(owner).await.unwrap()
}

fn told(cycles: &[Cycle]) -> Vec<(Certainty, Vec<&str>)> {
    let told = cycles.iter().map(|cycle| {
        let locks = cycle.locks().map(LockName::as_str).collect();
        (cycle.certainty, locks)
    });
    told.collect()
}

async fn timed_out(waiting: Waiting) -> WaitTimeout {
    match waiting.await.unwrap() {
        Err(AcquireError::Timeout(timeout)) => *timeout,
        other => panic!("{other:?}"),
    }
}

on_every_store! {
    async fn processes_that_wait_for_each_other_may_be_a_cycle(world: World) {
        let (one, two) = (world.runtime(1), world.another_line().runtime(2));
        let x = one.lock("x").unwrap().acquire().await.unwrap();
        let y = two.lock("y").unwrap().acquire().await.unwrap();
        let waiting = [waits(&one, "y", None, secs(600)), waits(&two, "x", None, secs(600))];
        let line = world.clone();
        for name in ["x", "y"] {
            let is_queued = async || line.holder(name).await.is_some_and(|held| !held.waiters.is_empty());
            world.until("it waits", is_queued).await;
        }
        let graph = one.wait_graph().await;
        assert!(graph.unread.is_empty(), "{graph:?}");
        assert!(graph.cycles.is_empty(), "tasks of theirs may go on: {graph:?}");
        let [cycle] = &graph.possible_cycles()[..] else { panic!("{graph:?}") };
        assert_eq!((cycle.certainty, cycle.steps.len()), (Certainty::Possible, 2));
        for (locks, holds, waits) in [(&one, "x", "y"), (&two, "y", "x")] {
            let process = graph.processes.iter().find(|process| process.runtime == locks.id()).unwrap();
            let step = cycle.steps.iter().find(|step| step.runtime == locks.id()).unwrap();
            assert_eq!((step.holds.as_str(), step.waits_for.as_str()), (holds, waits));
            assert_eq!(process.holds[0].lock.as_str(), holds);
            assert_eq!((process.waits[0].lock.as_str(), process.waits[0].position), (waits, 0));
        }
        drop(x);
        let [ahead, behind] = waiting;
        behind.await.unwrap().unwrap().release().await.unwrap();
        drop(y);
        ahead.await.unwrap().unwrap().release().await.unwrap();
        assert!(two.wait_graph().await.possible_cycles().is_empty());
    }
}

#[tokio::test]
async fn owners_of_a_process_that_wait_for_each_other_are_a_cycle_for_certain() {
    let world = World::new();
    let locks = world.runtime(1);
    let [a, b] = [locks.owner(), locks.owner()];
    let _x = held(&locks, "x", &a).await;
    let y = held(&locks, "y", &b).await;
    let first = waits(&locks, "y", Some(&a), secs(5));
    let second = waits(&locks, "x", Some(&b), secs(9));
    world.pass(secs(1)).await;
    assert_eq!(told(&locks.wait_graph().await.cycles), [(Certainty::Certain, vec!["x", "y"])]);

    world.pass(secs(5)).await;
    let timeout = timed_out(first).await;
    let cycle = timeout.cycle.as_ref().expect("the process sees all of it");
    let on_it: Vec<_> = cycle.locks().map(LockName::as_str).collect();
    assert_eq!((cycle.certainty, on_it), (Certainty::Certain, vec!["x", "y"]));
    let text = timeout.to_string();
    assert!(text.contains(r#"lock "y": not free within 5s"#), "{text}");
    assert!(text.contains(r#"owners of this process hold it and "x", and wait for each other"#));
    assert!(locks.wait_graph().await.cycles.is_empty(), "one of them waits no more");

    drop(y);
    world.pass(secs(5)).await;
    let timeout = timed_out(second).await;
    assert!(timeout.cycle.is_none(), "{timeout}");
}

#[tokio::test]
async fn a_longer_circle_is_seen_and_one_that_only_waits_for_it_is_not_part_of_it() {
    let world = World::new();
    let locks = world.runtime(1);
    let owners: Vec<Owner> = (0..4).map(|_| locks.owner()).collect();
    let mut guards = Vec::new();
    for (owner, name) in owners.iter().zip(["a", "b", "c", "d"]) {
        guards.push(held(&locks, name, owner).await);
    }
    // Three in a circle, and one before it.
    let mut waiting = Vec::new();
    for (owner, name) in owners.iter().zip(["b", "c", "a", "a"]) {
        waiting.push(waits(&locks, name, Some(owner), secs(5)));
    }
    world.pass(secs(1)).await;
    assert_eq!(told(&locks.wait_graph().await.cycles), [(Certainty::Certain, vec!["a", "b", "c"])]);
    world.pass(secs(5)).await;
    let mut cycles = Vec::new();
    for waiting in waiting {
        let cycle = timed_out(waiting).await.cycle;
        cycles.push(cycle.map_or(0, |cycle| cycle.steps.len()));
    }
    assert_eq!(cycles[3], 0, "{cycles:?}");
    assert_eq!(cycles[..3].iter().max(), Some(&3), "{cycles:?}");
}

#[tokio::test]
async fn an_owner_with_two_waits_is_not_certain_to_stay() {
    let world = World::new();
    let locks = world.runtime(1);
    let [a, b] = [locks.owner(), locks.owner()];
    let _x = held(&locks, "x", &a).await;
    let _y = held(&locks, "y", &b).await;
    let _z = locks.lock("z").unwrap().acquire().await.unwrap();
    let waiting = [("y", &a), ("z", &a), ("x", &b)]
        .map(|(name, owner)| waits(&locks, name, Some(owner), secs(5)));
    world.pass(secs(1)).await;
    assert!(locks.wait_graph().await.cycles.is_empty(), "it may go on with z");
    world.pass(secs(5)).await;
    for waiting in waiting {
        assert!(timed_out(waiting).await.cycle.is_none());
    }
}

#[tokio::test]
async fn owners_that_contend_without_a_circle_are_none() {
    let world = World::new();
    let locks = world.runtime(1);
    let [a, b] = [locks.owner(), locks.owner()];
    let x = held(&locks, "x", &a).await;
    let waiting = waits(&locks, "x", Some(&b), secs(5));
    world.pass(secs(6)).await;
    assert!(timed_out(waiting).await.cycle.is_none());
    // A call that is dropped waits no more.
    let _y = held(&locks, "y", &b).await;
    let dropped = waits(&locks, "x", Some(&b), secs(5));
    world.pass(secs(1)).await;
    dropped.abort();
    let waiting = waits(&locks, "y", Some(&a), secs(5));
    world.pass(secs(6)).await;
    assert!(timed_out(waiting).await.cycle.is_none());
    drop(x);
}

#[tokio::test]
async fn a_graph_that_is_not_complete_says_so() {
    let world = World::new();
    let locks = world.runtime(1);
    let _guard = locks.lock("x").unwrap().acquire().await.unwrap();
    let failure = StoreError::new(StoreErrorKind::Definite, "it fails", "try again");
    world.store.inject(Rule::new(Fault::Fail(failure)).on(CommandKind::Scan));
    let graph = locks.wait_graph().await;
    assert!(graph.processes.is_empty() && graph.unread.len() == 1, "{graph:?}");
}
