use leasehold::error::AcquireError;
use leasehold_testkit::{CommandKind, Fault, Gate, Rule};

use super::{outage, refusal, silences};
use crate::support::{Waiting, World, definite, just_before, lock, millis, secs};

#[tokio::test]
async fn a_wait_ends_after_its_patience_without_any_answer() {
    for fault in silences() {
        for (acquires, patience) in [(0, secs(5)), (1, secs(7)), (2, secs(1))] {
            let world = World::new();
            let locks = world.runtime(1);
            world.store.inject(Rule::new(fault.clone()).always());
            let acquire = lock(&locks).acquire();
            let waiting = Waiting::on(match acquires {
                0 => acquire.wait_forever(),
                1 => acquire.outage_patience(secs(7)),
                _ => acquire.wait(secs(1)),
            });
            world.pass(just_before(patience)).await;
            assert!(!waiting.is_over(), "{fault:?}, {patience:?}");
            // A command of the first task may take its time.
            world.pass(secs(2)).await;
            let outage = outage(waiting).await;
            assert_eq!(outage.lock.as_str(), World::NAME);
            assert!(outage.waited >= patience && outage.waited <= patience + secs(1), "{outage}");
            assert_eq!(outage.silent_for, outage.waited, "{fault:?}");
            // In a second nothing need have failed: what was sent is on its way.
            assert!(acquires == 2 || outage.failed > 0, "{outage:?}");
            assert!(outage.error.lock().is_none(), "{outage:?}");
        }
    }
}

#[tokio::test]
async fn the_runtimes_patience_holds_for_all_its_acquires() {
    let world = World::new();
    let locks = world.start(world.builder(1).outage_patience(secs(2)).command_timeout(secs(1)));
    world.store.inject(Rule::new(Fault::LoseRequest).always());
    let waiting = Waiting::on(lock(&locks).acquire());
    world.pass(just_before(secs(2))).await;
    assert!(!waiting.is_over());
    world.pass(millis(1)).await;
    let outage = outage(waiting).await;
    assert_eq!((outage.waited.as_secs(), outage.silent_for.as_secs()), (2, 2));
}

/// The heartbeats of one, and the long silence of the other, which asks nobody.
#[tokio::test]
async fn a_taken_lock_on_a_server_that_answers_is_never_an_outage() {
    for window in [secs(3), secs(400)] {
        let world = World::new();
        let locks = world.start(world.builder(1).ttl(secs(900)).claim_window(window));
        let others = world.start(world.builder(2).ttl(secs(900)).claim_window(window));
        let held = lock(&locks).acquire().await.unwrap();
        let waiting = [&locks, &others].map(|at| Waiting::on(lock(at).acquire().wait(secs(60))));
        world.pass(just_before(secs(60))).await;
        assert!(waiting.iter().all(|waiting| !waiting.is_over()), "{window:?}");
        world.pass(millis(1)).await;
        for waiting in waiting {
            let error = waiting.outcome().await.unwrap_err();
            let AcquireError::Timeout(timeout) = &error else { panic!("{error}") };
            assert!(timeout.holder.is_some(), "{error}");
        }
        held.release().await.unwrap();
    }
}

/// A refusal may end, so a wait goes on; but it does not say that others hold the lock.
#[tokio::test]
async fn a_wait_that_the_server_refuses_goes_on_and_ends_as_unavailable() {
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::Fail(refusal())).always());
    let waiting = [0, 1].map(|_| Waiting::on(lock(&locks).acquire()));
    world.pass(just_before(secs(30))).await;
    assert!(waiting.iter().all(|waiting| !waiting.is_over()));
    world.pass(millis(1)).await;
    for waiting in waiting {
        let refused = outage(waiting).await;
        assert_eq!(refused.error.what(), refusal().what());
        assert!(refused.answers_others && refused.failed > 1, "{refused:?}");
        assert!(refused.silent_for > secs(29), "since when it refuses: {refused:?}");
        let text = refused.to_string();
        for words in
            ["the server answers, and ", " commands for this lock failed in", "wait for it"]
        {
            assert!(text.contains(words), "{words:?}: {text}");
        }
    }
    // So does one whose commands alone are not answered.
    world.store.heal();
    let other = locks.lock("other").unwrap();
    let name = lock(&locks).name().clone();
    world.store.inject(Rule::new(Fault::LoseRequest).lock(&name).always());
    let waiting = Waiting::on(lock(&locks).acquire().wait(secs(12)));
    for _ in 0..13 {
        other.acquire().await.unwrap().release().await.unwrap();
        world.pass(secs(1)).await;
    }
    let lost = outage(waiting).await;
    assert!(lost.answers_others && lost.failed > 1, "{lost:?}");
    assert!(lost.to_string().contains("while others of this process were"), "{lost}");
}

/// The server said that the lock is taken, and says nothing more: that was before the outage.
#[tokio::test]
async fn a_queued_wait_whose_server_falls_silent_says_so() {
    for fault in silences() {
        for stops in [1, 30, 300, 600, 1_000, 1_300, 1_700, 1_990] {
            let world = World::new();
            let (locks, others) = (world.runtime(1), world.another_line().runtime(2));
            let held = lock(&others).acquire().ttl(secs(90)).await.unwrap();
            let waiting = [0, 1].map(|_| Waiting::on(lock(&locks).acquire().wait(secs(2))));
            world.pass(millis(stops)).await;
            world.store.inject(Rule::new(fault.clone()).always());
            world.pass(millis(2_250 - stops)).await;
            for waiting in waiting {
                outage(waiting).await;
            }
            assert!(held.is_held());
        }
    }
}

/// A server with long round trips is slow, and the lock is taken.
#[tokio::test]
async fn a_slow_server_is_no_silent_one() {
    for round_trip in [100, 400].map(millis) {
        let world = World::new();
        let (locks, others) = (world.runtime(1), world.another_line().runtime(2));
        let _held = lock(&others).acquire().ttl(secs(90)).await.unwrap();
        for kind in [
            CommandKind::Acquire,
            CommandKind::Heartbeat,
            CommandKind::Withdraw,
            CommandKind::Inspect,
        ] {
            world.slow_down(kind, round_trip);
        }
        for wait in [1_100, 2_000, 3_000].map(millis) {
            let waiting = Waiting::on(lock(&locks).acquire().wait(wait));
            world.pass(wait + millis(250)).await;
            let error = waiting.outcome().await.unwrap_err();
            assert!(matches!(error, AcquireError::Timeout(_)), "{round_trip:?}, {wait:?}: {error}");
        }
    }
}

/// The server is away for less than the patience, and those who wait keep their order.
#[tokio::test]
async fn a_wait_goes_on_when_the_server_comes_back_in_time() {
    for fault in silences() {
        let world = World::new();
        let locks = world.runtime(1);
        world.store.inject(Rule::new(fault.clone()).always());
        let mut waiting = Vec::new();
        for _ in 0..3 {
            waiting.push(Waiting::on(lock(&locks).acquire()));
            world.settle().await;
        }
        world.pass(secs(3)).await;
        world.store.heal();
        let mut fences = Vec::new();
        for waiting in waiting {
            let (guard, _) = waiting.taken_within(&world, secs(2)).await;
            fences.push(guard.fence());
            guard.release().await.unwrap();
        }
        assert!(fences.is_sorted() && fences.len() == 3, "{fault:?}");
    }
}

/// Each silence is shorter than the patience, and all of them together are not.
#[tokio::test]
async fn every_answer_begins_the_patience_anew() {
    let world = World::new();
    let (locks, others) = (world.runtime(1), world.another_line().runtime(2));
    let held = lock(&others).acquire().await.unwrap();
    let waiting = Waiting::queued(&world, &locks).await;
    for _ in 0..5 {
        world.store.inject(Rule::new(Fault::LoseRequest).always());
        world.pass(secs(3)).await;
        world.store.heal();
        world.pass(millis(1_500)).await;
        assert!(!waiting.is_over());
    }
    held.release().await.unwrap();
    waiting.taken_within(&world, secs(4)).await.0.release().await.unwrap();
}

/// The answer is there, and the process that slept has not read it yet.
#[tokio::test]
async fn a_process_that_stood_still_does_not_blame_the_server() {
    let world = World::new();
    let (locks, others) = (world.runtime(1), world.another_line().runtime(2));
    let held = lock(&others).acquire().ttl(secs(90)).await.unwrap();
    let waiting = Waiting::queued(&world, &locks).await;
    let gate = Gate::new();
    world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Heartbeat));
    world.pass(millis(900)).await;
    world.clock().advance(secs(20));
    gate.open();
    world.pass(millis(100)).await;
    assert!(!waiting.is_over());
    drop(held);
    waiting.taken_within(&world, secs(4)).await.0.release().await.unwrap();
}

/// A wait that is over before anything was answered does not know that the lock is taken.
#[tokio::test]
async fn a_short_wait_that_saw_no_answer_says_so() {
    for fault in silences() {
        let world = World::new();
        let locks = world.runtime(1);
        world.store.inject(Rule::new(fault.clone()).always());
        for wait in [millis(1), millis(5), millis(50), secs(1)] {
            let first = Waiting::on(lock(&locks).acquire().wait(wait));
            let second = Waiting::on(lock(&locks).acquire().wait(wait));
            world.pass(secs(4)).await;
            outage(first).await;
            outage(second).await;
        }
    }
    // The lock is held here, and an answer of another lock is on its way.
    let world = World::new();
    let locks = world.runtime(1);
    let held = lock(&locks).acquire().await.unwrap();
    let gate = Gate::new();
    world.pass(secs(1)).await;
    world.store.inject(Rule::new(Fault::DelayReply(gate.clone())));
    let other = Waiting::on(locks.lock("other").unwrap().acquire());
    let waiting = Waiting::on(lock(&locks).acquire().wait(millis(50)));
    world.pass(millis(100)).await;
    gate.open();
    assert!(matches!(waiting.outcome().await, Err(AcquireError::Timeout(_))));
    other.taken(&world).await.release().await.unwrap();
    held.release().await.unwrap();
}

#[tokio::test]
async fn an_outage_says_what_failed_since_when_and_of_which_lock() {
    let world = World::new();
    let locks = world.runtime(1);
    let _held = locks.lock("other").unwrap().acquire().await.unwrap();
    world.pass(secs(1)).await;
    world.store.inject(Rule::new(Fault::Fail(definite())).always());
    world.pass(secs(9)).await;
    let waiting = Waiting::on(lock(&locks).acquire());
    world.pass(millis(100)).await;
    let outage = outage(waiting).await;
    assert_eq!(outage.waited, millis(100));
    assert!(outage.silent_for > secs(6), "it began before the call: {outage}");
    let text = outage.to_string();
    for words in [
        World::NAME,
        "has not answered for",
        "commands of this process failed",
        "refused; try again",
    ] {
        assert!(text.contains(words), "{words:?}: {text}");
    }
}

/// Nobody here holds the lock, and its release is not answered: whether it is free is not known.
#[tokio::test]
async fn a_short_wait_behind_a_release_without_an_answer_says_so() {
    for wait in [millis(1), millis(50), secs(1)] {
        let world = World::new();
        let locks = world.runtime(1);
        let guard = lock(&locks).acquire().await.unwrap();
        world.pass(secs(1)).await;
        world.store.inject(Rule::new(Fault::DelayReply(Gate::new())).always());
        drop(guard);
        world.settle().await;
        let waiting = Waiting::on(lock(&locks).acquire().wait(wait));
        world.pass(wait + millis(300)).await;
        outage(waiting).await;
    }
    // The control: the server answers, and another process has the lock by then.
    let world = World::new();
    let (locks, others) = (world.runtime(1), world.another_line().runtime(2));
    let guard = lock(&locks).acquire().await.unwrap();
    let theirs = Waiting::queued(&world, &others).await;
    drop(guard);
    let waiting = Waiting::on(lock(&locks).acquire().wait(millis(50)));
    world.pass(millis(350)).await;
    assert!(matches!(waiting.outcome().await, Err(AcquireError::Timeout(_))));
    drop(theirs);
}

/// What a task of this process holds is taken, whatever the server says; and by whom is known.
#[tokio::test]
async fn a_lock_that_a_task_of_this_process_holds_is_taken_also_in_an_outage() {
    for fault in silences() {
        let world = World::new();
        let locks = world.runtime(1);
        let held = lock(&locks).acquire().ttl(secs(60)).await.unwrap();
        world.store.inject(Rule::new(fault.clone()).always());
        // Something has failed by now.
        let other = Waiting::on(locks.lock("other").unwrap().acquire());
        world.pass(secs(6)).await;
        outage(other).await;
        for wait in [millis(5), millis(50), secs(3), secs(12)] {
            let waiting = Waiting::on(lock(&locks).acquire().wait(wait));
            world.pass(just_before(wait)).await;
            assert!(!waiting.is_over(), "{fault:?}, {wait:?}");
            world.pass(millis(251)).await;
            let error = waiting.outcome().await.unwrap_err();
            let AcquireError::Timeout(timeout) = &error else { panic!("{fault:?}: {error}") };
            let holder = timeout.holder.as_ref().expect("it is known here");
            assert!(holder.this_runtime && holder.fence == held.fence(), "{error}");
        }
        assert!(held.is_held(), "it is believed all the while");
    }
}

/// The lease is lost while another task waits for it: from then on the silence counts.
#[tokio::test]
async fn a_wait_for_a_lease_that_is_lost_in_an_outage_ends_as_an_outage() {
    for fault in silences() {
        let world = World::new();
        let locks = world.runtime(1);
        let held = lock(&locks).acquire().await.unwrap();
        let waiting = Waiting::queued(&world, &locks).await;
        world.store.inject(Rule::new(fault.clone()).always());
        world.pass(secs(9)).await;
        assert!(held.is_held() && !waiting.is_over(), "{fault:?}");
        world.pass(secs(1)).await;
        assert!(!held.is_held());
        world.pass(secs(5)).await;
        outage(waiting).await;
    }
}
