//! A reply that is lost costs neither a grant nor a place, whatever the claim window.

use std::time::Duration;

use leasehold::{LockRuntime, LockRuntimeBuilder};
use leasehold_reentrant_lock::seam::Rules;
use leasehold_testkit::{CommandKind, Fault, Rule, Wrong};

use crate::support::{Waiting, World, lock, millis, secs, warm_up};

/// From the shortest that can be set to the default.
const WINDOWS: [Duration; 7] =
    [millis(50), millis(75), millis(100), millis(200), millis(300), secs(1), secs(3)];

/// Makes a right runtime, or one that does something wrong.
type Start = fn(&World, LockRuntimeBuilder) -> LockRuntime;

fn one_at_a_time(world: &World, builder: LockRuntimeBuilder) -> LockRuntime {
    world.start_wrong(builder, Wrong::BeatsOneAtATime)
}

/// Strikes one command of a kind: it is executed, and nothing is heard.
fn lose_reply(world: &World, kind: CommandKind) {
    world.store.inject(Rule::new(Fault::LoseReply).on(kind));
}

/// The first task's own command is executed, and its answer is lost; then the lock is handed to it.
async fn granted_without_a_first_reply(start: Start) -> (World, Waiting, Waiting) {
    let world = World::new();
    let holds = world.another_line().runtime(1);
    let waits = start(&world, world.builder(2));
    let comes = world.another_line().runtime(3);
    let guard = lock(&holds).acquire().await.unwrap();
    lose_reply(&world, CommandKind::Acquire);
    let first = Waiting::queued(&world, &waits).await;
    let second = Waiting::queued(&world, &comes).await;
    world.pass(millis(100)).await;
    guard.release().await.unwrap();
    (world, first, second)
}

#[tokio::test]
async fn a_grant_is_taken_although_the_first_reply_is_lost() {
    let (world, first, second) = granted_without_a_first_reply(World::start).await;
    first.taken(&world).await.release().await.unwrap();
    second.taken(&world).await.release().await.unwrap();
    // The command that was not answered is taken back; nothing comes of a late copy.
    world.pass(secs(5)).await;
    assert!(world.holder(World::NAME).await.is_none());
}

/// The control: a task that hears nothing but its own answer does not see what it is handed.
#[tokio::test]
async fn control_a_task_that_does_not_listen_leaves_its_grant_lying() {
    let deaf: Start = |world, builder| world.start_wrong(builder, Wrong::IsDeafWhileItAsks);
    let (world, first, second) = granted_without_a_first_reply(deaf).await;
    world.pass(millis(500)).await;
    assert!(!first.is_over() && !second.is_over(), "the lock idles");
}

/// When the lock is released, counted from the loss: at any time of three claim windows.
fn moments(window: Duration) -> impl Iterator<Item = Duration> {
    (0..=18).map(move |sixths| window * sixths / 6)
}

/// Two processes wait, and replies to the first are lost; whether it is served first.
async fn keeps_its_place(
    start: Start,
    window: Duration,
    lost: &[CommandKind],
    after: Duration,
) -> bool {
    let world = World::new();
    let (holds, comes) = (world.another_line().runtime(1), world.another_line().runtime(3));
    let waits = start(&world, world.builder(2).claim_window(window));
    let guard = lock(&holds).acquire().await.unwrap();
    for kind in lost {
        lose_reply(&world, *kind);
    }
    let first = Waiting::queued(&world, &waits).await;
    let second = Waiting::queued(&world, &comes).await;
    while lost.iter().any(|kind| world.store.executed(*kind) == 0) {
        world.pass(millis(1)).await;
    }
    world.pass(after).await;
    guard.release().await.unwrap();
    world.settle().await;
    let is_first = first.is_over() && !second.is_over();
    if is_first {
        first.taken(&world).await.release().await.unwrap();
        second.taken(&world).await.release().await.unwrap();
    }
    is_first
}

#[tokio::test]
async fn a_lost_reply_of_the_first_command_costs_no_place() {
    for window in WINDOWS {
        for after in moments(window) {
            for lost in
                [&[CommandKind::Acquire][..], &[CommandKind::Acquire, CommandKind::Heartbeat]]
            {
                let kept = keeps_its_place(World::start, window, lost, after).await;
                assert!(kept, "{window:?}, {after:?} after {lost:?}");
            }
        }
    }
}

#[tokio::test]
async fn a_lost_reply_of_a_heartbeat_costs_no_place() {
    for window in WINDOWS {
        for after in moments(window) {
            let lost = [CommandKind::Heartbeat];
            let kept = keeps_its_place(World::start, window, &lost, after).await;
            assert!(kept, "{window:?}, {after:?} after the loss");
        }
    }
}

/// The control: where a heartbeat waits for the answer to the one before, a short window lapses.
#[tokio::test]
async fn control_heartbeats_one_at_a_time_lose_short_windows() {
    let (mut lost, window) = (0, millis(75));
    for after in moments(window) {
        let kept = keeps_its_place(one_at_a_time, window, &[CommandKind::Heartbeat], after).await;
        lost += u32::from(!kept);
    }
    assert!(lost > 0);
}

/// A release that queues its process anew is executed, and its answer is lost.
async fn queued_anew_keeps_its_place(start: Start, window: Duration, after: Duration) -> bool {
    let world = World::new();
    let (next, comes) = (world.another_line().runtime(1), world.another_line().runtime(3));
    let holds = start(&world, world.builder(2).claim_window(window));
    warm_up(&world, &next).await;
    let guard = lock(&holds).acquire().await.unwrap();
    let theirs = Waiting::queued(&world, &next).await;
    let again = Waiting::queued(&world, &holds).await;
    // Its turn, which began alone, is over.
    world.pass(millis(10)).await;
    lose_reply(&world, CommandKind::Release);
    guard.release().await.unwrap();
    let theirs = theirs.taken(&world).await;
    let last = Waiting::queued(&world, &comes).await;
    world.pass(after).await;
    theirs.release().await.unwrap();
    world.settle().await;
    let is_first = again.is_over() && !last.is_over();
    if is_first {
        again.taken(&world).await.release().await.unwrap();
        last.taken(&world).await.release().await.unwrap();
    }
    is_first
}

#[tokio::test]
async fn a_lost_reply_of_a_release_that_queues_anew_costs_no_place() {
    for window in WINDOWS {
        for after in moments(window) {
            let kept = queued_anew_keeps_its_place(World::start, window, after).await;
            assert!(kept, "{window:?}, {after:?} after the loss");
        }
    }
}

/// The control: with one copy at a time, and the time of an ordinary command, the place lapses
/// before anybody asks again.
#[tokio::test]
async fn control_a_release_with_the_time_of_other_commands_loses_its_place() {
    let start: Start = |world, builder| {
        let rules = Rules { place_deadline: |_, command| command, ..Rules::default() };
        one_at_a_time(world, builder.seam(rules))
    };
    for window in [millis(300), secs(1)] {
        let mut lost = 0;
        for after in moments(window) {
            lost += u32::from(!queued_anew_keeps_its_place(start, window, after).await);
        }
        assert!(lost > 0, "{window:?}");
    }
}

/// A connection says nothing any more, until the first heartbeat on it has had its time and it is
/// replaced; whether the place is kept.
async fn outlives_a_dead_connection(window: Duration, after: Duration, rules: Rules) -> bool {
    let world = World::new();
    let (holds, comes) = (world.another_line().runtime(1), world.another_line().runtime(3));
    let waits = world.start(world.builder(2).claim_window(window).seam(rules));
    let guard = lock(&holds).acquire().await.unwrap();
    let first = Waiting::queued(&world, &waits).await;
    let second = Waiting::queued(&world, &comes).await;
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Heartbeat).always());
    while world.store.sent(CommandKind::Heartbeat) == 0 {
        world.pass(millis(1)).await;
    }
    let (time, command) = ((window / 3).max(millis(100)), secs(2));
    world.pass((rules.place_deadline)(time, command)).await;
    world.store.heal();
    world.pass(after).await;
    guard.release().await.unwrap();
    world.settle().await;
    first.is_over() && !second.is_over()
}

#[tokio::test]
async fn a_dead_connection_costs_no_place() {
    for window in [millis(300), millis(600), secs(1), secs(3)] {
        for after in moments(window) {
            let kept = outlives_a_dead_connection(window, after, Rules::default()).await;
            assert!(kept, "{window:?}, {after:?} after it was replaced");
        }
    }
}

/// The control: with the time of an ordinary command, or the greater of the two, it is replaced too
/// late.
#[tokio::test]
async fn control_heartbeats_with_more_time_notice_a_dead_connection_too_late() {
    let command = Rules { place_deadline: |_, command| command, ..Rules::default() };
    let greater =
        Rules { place_deadline: |heartbeat, command| heartbeat.max(command), ..Rules::default() };
    for rules in [command, greater] {
        let at_once = outlives_a_dead_connection(secs(1), Duration::ZERO, rules).await;
        assert!(!at_once);
    }
}
