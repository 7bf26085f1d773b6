use leasehold::{error::AcquireError, once::Begun};
use leasehold_testkit::{CommandKind, Fault, Gate, Rule};

use crate::support::{World, millis, secs};

const NAME: &str = World::NAME;

/// Each answer comes just in time for its own command: together they are late.
#[tokio::test]
async fn a_beginning_answers_within_one_command_timeout() {
    let world = World::new();
    let (locks, other) = (world.another_line().runtime(1), world.runtime(2));
    let first = locks.once(NAME).unwrap().begin().await.unwrap();
    assert!(matches!(first, Begun::First(_)));
    let (asked, looked) = (Gate::new(), Gate::new());
    world.store.inject(Rule::new(Fault::Delay(asked.clone())).on(CommandKind::Acquire));
    world.store.inject(Rule::new(Fault::Delay(looked.clone())).on(CommandKind::Inspect));
    let once = other.once(NAME).unwrap();
    let begin = tokio::spawn(async move { once.begin().await });
    world.pass(millis(1_900)).await;
    asked.open();
    world.settle().await;
    assert_eq!(looked.arrived(), 1, "it looks who runs");
    world.pass(millis(100)).await;
    assert!(begin.is_finished(), "one command timeout for both");
    let told = begin.await.unwrap();
    assert!(matches!(told, Err(AcquireError::Unavailable(_))), "{told:?}");
}

/// The control: in time, both answers together say who runs.
#[tokio::test]
async fn answers_that_come_in_time_tell_who_runs() {
    let world = World::new();
    let (locks, other) = (world.another_line().runtime(1), world.runtime(2));
    let first = locks.once(NAME).unwrap().begin().await.unwrap();
    let (asked, looked) = (Gate::new(), Gate::new());
    world.store.inject(Rule::new(Fault::Delay(asked.clone())).on(CommandKind::Acquire));
    world.store.inject(Rule::new(Fault::Delay(looked.clone())).on(CommandKind::Inspect));
    let once = other.once(NAME).unwrap();
    let begin = tokio::spawn(async move { once.begin().await });
    for gate in [asked, looked] {
        world.pass(millis(900)).await;
        gate.open();
    }
    world.settle().await;
    assert!(matches!(begin.await.unwrap(), Ok(Begun::Duplicate(_))));
    drop(first);
    world.pass(secs(1)).await;
}
