use leasehold::{Guard, LockRuntime};
use leasehold_testkit::{CommandKind, Fault, Log, Rule};

use super::{outage, refusal, silences};
use crate::support::{Waiting, World, lock, millis, secs};

/// So many leases, and so many who wait.
const LEASES: usize = 1_000;
const WAITING: usize = 100;

async fn many(locks: &LockRuntime) -> Vec<Guard> {
    let mut guards = Vec::new();
    for number in 0..LEASES {
        guards.push(locks.lock(format!("many/{number}")).unwrap().acquire().await.unwrap());
    }
    guards
}

#[tokio::test]
async fn an_outage_with_very_many_leases_is_told_in_few_lines() {
    for fault in silences() {
        let (log, _collecting) = Log::as_services_see_it();
        let world = World::new();
        let locks = world.runtime(1);
        let guards = many(&locks).await;
        world.pass(secs(21)).await;
        assert_eq!(log.lines(), [""; 0], "a server that answers is no news");

        world.store.inject(Rule::new(fault.clone()).always());
        let waits = (0..WAITING).map(|number| locks.lock(format!("wait/{number}")).unwrap());
        let waiting: Vec<_> = waits.map(|lock| Waiting::on(lock.acquire())).collect();
        world.pass(secs(4)).await;
        world.pass(secs(16)).await;
        assert!(guards.iter().all(|guard| !guard.is_held()), "all of them are lost");
        drop(guards);
        for waiting in waiting {
            outage(waiting).await;
        }
        world.store.heal();
        world.pass(secs(30)).await;

        let lines = log.lines();
        assert!(lines.len() <= 30, "{fault:?}: {} lines: {lines:#?}", lines.len());
        let summaries = log.with("the server does not answer");
        assert!((3..=6).contains(&summaries.len()), "{fault:?}: {lines:#?}");
        for words in ["leases_at_risk=", "acquires_waiting=", "unreachable_for=", "failed="] {
            assert!(summaries.iter().all(|line| line.contains(words)), "{words}: {summaries:#?}");
        }
        assert!(summaries[0].contains(" renew"), "{summaries:#?}");
        let waiting = format!("acquires_waiting={WAITING}");
        assert!(summaries.iter().any(|line| line.contains(&waiting)), "{summaries:#?}");
        let ends = log.with("the server answers again");
        assert_eq!(ends.len(), 1, "{fault:?}: {lines:#?}");
        assert!(ends[0].contains("leases_lost=1000") && ends[0].contains("INFO"), "{ends:?}");
        let losses = log.with("lease lost: ");
        assert!((1..=10).contains(&losses.len()), "{lines:#?}");
        for words in ["lock=many/", "lease=", "fence="] {
            assert!(losses.iter().all(|line| line.contains(words)), "{words}: {losses:#?}");
        }
        assert!((1..=3).contains(&log.with("more leases lost").len()), "{lines:#?}");
    }
}

#[tokio::test]
async fn the_first_failure_names_what_it_is_about() {
    let (log, _collecting) = Log::as_services_see_it();
    let world = World::new();
    let locks = world.runtime(1);
    let guard = lock(&locks).acquire().await.unwrap();
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Renew));
    world.pass(secs(10)).await;
    let lines = log.lines();
    let (fence, id) = (guard.fence(), guard.id());
    let first = format!("command=\"renew\" lock={} lease={id} fence={fence}", World::NAME);
    assert!(lines[0].starts_with("WARN") && lines[0].contains(&first), "{first}: {lines:#?}");
    assert!(lines[1].contains("the server answers again"), "{lines:#?}");
    assert_eq!(lines.len(), 2, "{lines:#?}");
}

/// Nobody asks a server for anything after a try has failed, and yet the log says when it is back.
#[tokio::test]
async fn a_process_at_rest_notices_that_its_server_is_back() {
    let (log, _collecting) = Log::as_services_see_it();
    let world = World::new();
    let locks = world.runtime(1);
    world.store.inject(Rule::new(Fault::Fail(crate::support::definite())).always());
    assert!(lock(&locks).try_acquire().await.is_err());
    world.pass(secs(60)).await;
    assert_eq!(log.with("answers again"), [""; 0]);
    world.store.heal();
    world.pass(secs(6)).await;
    let ends = log.with("the server answers again");
    assert!(ends.len() == 1 && ends[0].contains("unreachable_for=6"), "{ends:?}");
    world.store.clear_log();
    world.pass(secs(60)).await;
    assert_eq!(world.store.sent(CommandKind::Inspect), 0, "no probe where nothing is wrong");
}

/// A process that sends nothing of its own, and is asked for its health.
#[tokio::test]
async fn an_outage_that_only_a_probe_meets_is_told_from_its_beginning_to_its_end() {
    for fault in silences() {
        let (log, _collecting) = Log::as_services_see_it();
        let world = World::new();
        let locks = world.runtime(1);
        assert!(locks.health().is_ready());
        world.pass(secs(21)).await;
        assert_eq!(log.lines(), [""; 0], "a server that answers is no news");
        world.store.inject(Rule::new(fault.clone()).always());
        world.pass(secs(25)).await;
        world.store.heal();
        world.pass(secs(6)).await;
        let lines = log.lines();
        let first = "a command was not answered, or could not be sent";
        assert!(lines[0].contains(first) && lines[0].contains("command=\"probe\""), "{lines:#?}");
        assert!(lines[0].starts_with("WARN"), "{lines:#?}");
        let summaries = log.with("the server does not answer");
        assert!((3..=5).contains(&summaries.len()), "{fault:?}: {lines:#?}");
        assert!(summaries.iter().all(|line| line.contains(" probe")), "{summaries:#?}");
        let ends = log.with("the server answers again");
        assert!(ends.len() == 1 && ends[0].starts_with("INFO"), "{fault:?}: {lines:#?}");
        assert_eq!(lines.len(), summaries.len() + 2, "{fault:?}: {lines:#?}");
    }
}

#[tokio::test]
async fn a_server_that_refuses_everything_is_told_in_few_lines() {
    let (log, _collecting) = Log::as_services_see_it();
    let world = World::new();
    let locks = world.runtime(1);
    let guards = many(&locks).await;
    world.store.inject(Rule::new(Fault::Fail(refusal())).always());
    world.pass(secs(20)).await;
    assert!(guards.iter().all(|guard| !guard.is_held()));
    drop(guards);
    world.pass(secs(20)).await;
    let lines = log.lines();
    assert!(lines.len() <= 30, "{} lines: {lines:#?}", lines.len());
    assert_eq!(log.with("the server refused a command").len(), 1, "{lines:#?}");
    assert_eq!(log.with("does not answer"), [""; 0]);
    assert!(!log.with("commands fail; the server answers others").is_empty(), "{lines:#?}");
}

/// One reply in ten is lost, for minutes.
#[tokio::test]
async fn a_line_that_loses_replies_now_and_then_costs_a_line_every_few_seconds() {
    let (log, _collecting) = Log::as_services_see_it();
    let world = World::new();
    let locks = world.runtime(1);
    for turn in 0..600 {
        if turn % 10 == 0 {
            world.store.inject(Rule::new(Fault::Fail(crate::support::indeterminate())));
        }
        if let Ok(Some(guard)) = lock(&locks).try_acquire().await {
            let _ = guard.release().await;
        }
        world.pass(millis(200)).await;
    }
    let lines = log.lines();
    assert!(lines.len() <= 120 / 5 + 2, "{} lines: {lines:#?}", lines.len());
}

/// What was sent before the server came back fails after it: that is no second outage.
#[tokio::test]
async fn a_late_failure_of_an_outage_that_is_over_is_no_second_one() {
    let (log, _collecting) = Log::as_services_see_it();
    let world = World::new();
    let locks = world.runtime(1);
    let early = locks.lock("early").unwrap();
    let other = locks.lock("other").unwrap();
    world.pass(secs(6)).await;
    world.store.inject(Rule::new(Fault::Fail(crate::support::definite())).times(1));
    assert!(other.try_acquire().await.is_err());
    // Sent in the outage, and never answered.
    world.store.inject(Rule::new(Fault::LoseRequest).on(CommandKind::Acquire).lock(early.name()));
    world.pass(millis(3_500)).await;
    let trying = tokio::spawn(async move { early.try_acquire().await });
    world.pass(millis(600)).await;
    let guard = other.acquire().await.unwrap();
    assert_eq!(log.count("the server answers again"), 1, "{:#?}", log.lines());
    world.pass(secs(2)).await;
    assert!(trying.await.unwrap().is_err());
    world.pass(secs(20)).await;
    let lines = log.lines();
    assert_eq!(log.count("a command was not answered"), 1, "{lines:#?}");
    assert_eq!(log.count("answers again") + log.count("no longer fail"), 1, "{lines:#?}");
    guard.release().await.unwrap();
}

/// The look at the holder has 250 ms; a server that takes longer is slow, and not away.
#[tokio::test]
async fn a_look_that_is_dropped_is_no_failure() {
    let (log, _collecting) = Log::as_services_see_it();
    let world = World::new();
    let (locks, others) = (world.runtime(1), world.another_line().runtime(2));
    let held = lock(&others).acquire().await.unwrap();
    world.slow_down(CommandKind::Inspect, millis(400));
    let waiting = Waiting::on(lock(&locks).acquire().wait(secs(1)));
    world.pass(millis(1_250)).await;
    assert!(waiting.is_over());
    let Err(leasehold::error::AcquireError::Timeout(timeout)) = waiting.outcome().await else {
        panic!()
    };
    assert!(timeout.holder.is_none(), "{timeout}");
    world.pass(secs(20)).await;
    assert_eq!(log.lines(), [""; 0]);
    held.release().await.unwrap();
}
