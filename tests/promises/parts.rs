//! A store may have several parts, as a Redis Cluster has masters: they do not delay each other.

use std::collections::BTreeSet;

use leasehold::{Guard, LockName, LockRuntime};
use leasehold_core::store::Command;
use leasehold_testkit::{CommandKind, Fault, Rule, faulty::CommandFacts};

use crate::support::{Waiting, World, secs};

const NAMES: usize = 120;

/// The part in which the tests put a name: its number, modulo 3.
fn part(name: &LockName) -> usize {
    number(name).map_or(0, |number| number % 3)
}

fn number(name: &LockName) -> Option<usize> {
    name.as_str().strip_prefix('n')?.parse().ok()
}

fn names() -> impl Iterator<Item = LockName> {
    (0..NAMES).map(|number| LockName::new(format!("n{number}")).unwrap())
}

async fn all_locks(locks: &LockRuntime) -> Vec<Guard> {
    let mut guards = Vec::new();
    for name in names() {
        guards.push(locks.lock(name).unwrap().acquire().await.unwrap());
    }
    guards
}

/// Strikes all commands of a kind that are about a name of the first part.
fn take_down_the_first_part(world: &World, kind: CommandKind) {
    for name in names().filter(|name| part(name) == 0) {
        world.store.inject(Rule::new(Fault::LoseRequest).on(kind).lock(&name).always());
    }
}

/// The batches of a kind that reached the store, as the parts of their names.
fn batches(world: &World, kind: CommandKind) -> Vec<Vec<usize>> {
    let parts = |command: &Command| command.names().into_iter().map(part).collect();
    let log = world.store.log().into_iter().filter(|done| done.command.kind() == kind);
    log.map(|done| parts(&done.command)).collect()
}

/// No batch has names of several parts, and there are some of every part with several names.
fn assert_separate(batches: &[Vec<usize>]) {
    let parts = |batch: &Vec<usize>| batch.iter().copied().collect::<BTreeSet<_>>();
    assert!(batches.iter().all(|batch| parts(batch).len() == 1), "{batches:?}");
    let large = batches.iter().filter(|batch| batch.len() > 1);
    assert_eq!(large.flatten().copied().collect::<BTreeSet<_>>(), [0, 1, 2].into());
}

/// The leases whose names are not in the first part.
fn of_others(guards: &[Guard]) -> impl Iterator<Item = &Guard> {
    guards.iter().filter(|guard| part(guard.name()) != 0)
}

#[tokio::test]
async fn a_part_that_is_down_loses_its_own_leases_only() {
    let world = World::new();
    world.store.divide(part);
    let guards = all_locks(&world.runtime(1)).await;
    world.pass(secs(10)).await;
    assert_separate(&batches(&world, CommandKind::Renew));
    take_down_the_first_part(&world, CommandKind::Renew);
    world.pass(secs(20)).await;
    assert!(of_others(&guards).all(|guard| guard.is_held()));
    let held = guards.iter().filter(|guard| guard.is_held()).count();
    assert_eq!(held, of_others(&guards).count(), "the others were not renewed");
}

/// The same store without parts, as a control.
#[tokio::test]
async fn without_parts_it_takes_others_along() {
    let world = World::new();
    let guards = all_locks(&world.runtime(1)).await;
    take_down_the_first_part(&world, CommandKind::Renew);
    world.pass(secs(20)).await;
    assert!(!of_others(&guards).all(|guard| guard.is_held()));
}

#[tokio::test]
async fn heartbeats_of_different_parts_travel_apart() {
    let world = World::new();
    world.store.divide(part);
    let _held = all_locks(&world.another_line().runtime(1)).await;
    let waits = world.runtime(2);
    let wait = |name| Waiting::on(waits.lock(name).unwrap().acquire().wait_forever());
    let waiting: Vec<Waiting> = names().map(wait).collect();
    world.pass(secs(10)).await;
    assert_separate(&batches(&world, CommandKind::Heartbeat));
    assert!(!waiting.iter().any(Waiting::is_over));
}
