//! What a trace shows: an `acquire` for each call with its wait, position and outcome, and a `hold` for each lease until
//! its end.

use std::time::Duration;

use leasehold::{LockRuntime, once::Begun};
use leasehold_testkit::{Fault, Rule};
use tracing::{Instrument, info_span};

use crate::support::{Spans, Waiting, World, lock, millis, secs};

/// A filter for those who want the spans, beside a log at INFO.
const ON: &str = "info,leasehold::spans=debug";

const ERROR: [&str; 3] = ["otel.status_code", "error.type", "otel.status_description"];

#[tokio::test]
async fn a_free_lock_has_an_acquire_and_a_hold_in_the_span_of_the_caller() {
    let (spans, _listening) = Spans::filtered("debug");
    let world = World::new();
    let locks = world.start(world.builder(1).service("billing"));
    let orders = lock(&locks).class("orders");
    let request = info_span!("request");
    let guard = orders.acquire().wait(secs(7)).instrument(request.clone()).await.unwrap();
    let fence = guard.fence().to_string();

    let acquire = spans.only("acquire");
    assert!(acquire.is_over);
    assert_eq!((acquire.parent, &acquire.follows[..]), (Some("request"), &[][..]));
    let server = ["otel.kind", "db.system.name", "db.operation.name"];
    assert_eq!(acquire.fields(server), ["client", "redis", "acquire"]);
    let told = ["leasehold.lock", "leasehold.class", "leasehold.ttl", "leasehold.wait_limit"];
    assert_eq!(acquire.fields(told), [World::NAME, "orders", "10.0", "7.0"]);
    assert!(acquire.field("leasehold.label").ends_with("billing"), "{acquire:?}");
    let ended = ["leasehold.outcome", "leasehold.wait", "leasehold.position", "leasehold.fence"];
    assert_eq!(acquire.fields(ended), ["acquired", "0.0", "", &fence]);
    assert_eq!(acquire.fields(ERROR), ["", "", ""]);
    assert_eq!(acquire.events, ["acquired"], "the log of a call is in its span");

    let hold = spans.only("hold");
    assert_eq!((hold.parent, &hold.follows[..]), (Some("request"), &["acquire"][..]));
    assert_eq!(hold.fields(server), ["", "", ""], "a hold is no call");
    assert_eq!(hold.field("leasehold.label"), acquire.field("leasehold.label"));
    let told = ["leasehold.lock", "leasehold.class", "leasehold.ttl", "leasehold.fence"];
    assert_eq!(hold.fields(told), [World::NAME, "orders", "10.0", &fence]);
    assert!(!hold.is_over);
    guard.release().await.unwrap();
    let hold = spans.only("hold");
    assert_eq!((hold.is_over, hold.field("leasehold.end")), (true, "released"));
    assert_eq!(hold.fields(ERROR), ["", "", ""]);
    assert!(!spans.only("request").is_over, "only the test has it");
}

#[tokio::test]
async fn locks_of_this_process_are_no_database() {
    let (spans, _listening) = Spans::filtered(ON);
    let locks = LockRuntime::embedded().unwrap();
    drop(lock(&locks).acquire().wait_forever().await.unwrap());
    let acquire = spans.only("acquire");
    let fields = ["otel.kind", "db.system.name", "db.operation.name", "leasehold.wait_limit"];
    assert_eq!(acquire.fields(fields), ["internal", "", "", ""]);
    assert_eq!(acquire.parent, None);
    let hold = spans.only("hold");
    assert_eq!((hold.parent, hold.is_over, hold.field("leasehold.end")), (None, true, "dropped"));
}

#[tokio::test]
async fn a_wait_tells_its_position_at_once_and_its_length_at_the_end() {
    let (spans, _listening) = Spans::filtered(ON);
    let world = World::new();
    let (ours, theirs) = (world.runtime(1), world.runtime(2));
    let held = lock(&theirs).acquire().await.unwrap();
    let first = Waiting::queued(&world, &ours).await;
    let second = Waiting::queued(&world, &ours).await;
    let ended = ["leasehold.position", "leasehold.outcome", "leasehold.wait"];
    let told = |at: usize| spans.named("acquire")[at].clone();
    assert_eq!(told(1).fields(ended), ["0", "", ""]);
    assert_eq!(told(2).fields(ended), ["1", "", ""]);
    assert_eq!(spans.named("hold").len(), 1, "nobody holds before the grant");
    world.pass(secs(3)).await;
    held.release().await.unwrap();
    let guard = first.taken(&world).await;
    world.pass(secs(2)).await;
    drop(guard);
    let guard = second.taken(&world).await;
    assert_eq!(told(1).fields(ended), ["0", "acquired", "3.0"]);
    assert_eq!(told(2).fields(ended), ["1", "acquired", "5.0"]);
    let ends = spans.named("hold").into_iter().map(|hold| hold.field("leasehold.end").to_owned());
    assert_eq!(ends.collect::<Vec<_>>(), ["released", "dropped", ""]);
    drop(guard);
}

#[tokio::test]
async fn a_call_that_gets_no_lease_says_why() {
    let (spans, _listening) = Spans::filtered(ON);
    let world = World::new();
    let (ours, theirs) = (world.runtime(1), world.runtime(2));
    let held = lock(&theirs).acquire().await.unwrap();
    let last = || {
        let acquire = spans.named("acquire").pop().unwrap();
        assert!(acquire.is_over, "{acquire:?}");
        let [code, kind, why] = acquire.fields(ERROR).map(str::to_owned);
        let outcome = acquire.field("leasehold.outcome").to_owned();
        (outcome, acquire.field("leasehold.wait").to_owned(), code, kind, why)
    };

    assert!(lock(&ours).try_acquire().await.unwrap().is_none());
    let (outcome, wait, code, kind, _) = last();
    assert_eq!([outcome, wait, code, kind], ["busy", "0.0", "", ""], "no error of the caller");

    let waiting = Waiting::on(lock(&ours).acquire().wait(secs(4)));
    world.pass(secs(5)).await;
    let error = waiting.outcome().await.unwrap_err().to_string();
    let (outcome, wait, code, kind, why) = last();
    assert_eq!([outcome, code, kind, why], ["timeout", "ERROR", "timeout", &error]);
    assert!((4.0..4.25).contains(&wait.parse::<f64>().unwrap()), "{wait}");

    let waiting = Waiting::queued(&world, &ours).await;
    world.pass(secs(2)).await;
    waiting.cancel().await;
    let (outcome, wait, code, kind, _) = last();
    assert_eq!([outcome, wait, code, kind], ["cancelled", "2.0", "", ""]);

    let closed = world.runtime(3);
    let _ = closed.shutdown(secs(1)).await;
    let error = lock(&closed).acquire().await.unwrap_err().to_string();
    let (outcome, _, code, kind, why) = last();
    assert_eq!([outcome, code, kind, why], ["error", "ERROR", "error", &error]);

    world.store.inject(Rule::new(Fault::LoseRequest).always());
    let waiting = Waiting::on(lock(&ours).acquire().outage_patience(secs(1)));
    world.pass(secs(5)).await;
    let error = waiting.outcome().await.unwrap_err().to_string();
    let (outcome, _, code, kind, why) = last();
    assert_eq!([outcome, code, kind, why], ["unavailable", "ERROR", "unavailable", &error]);
    assert_eq!(spans.named("hold").len(), 1);
    drop(held);
}

#[tokio::test]
async fn a_re_entry_has_an_acquire_and_no_hold_of_its_own() {
    let (spans, _listening) = Spans::filtered(ON);
    let world = World::new();
    let locks = world.runtime(1);
    let owner = locks.owner();
    let outer = lock(&locks).acquire().owner(&owner).await.unwrap();
    let inner = lock(&locks).acquire().owner(&owner).await.unwrap();
    let again = inner.reenter().await.unwrap();
    let acquires = spans.named("acquire");
    assert_eq!(acquires.len(), 2, "a guard that is taken twice is no call of a lock");
    let fence = outer.fence().to_string();
    let ended = ["leasehold.outcome", "leasehold.fence"];
    assert_eq!(acquires[1].fields(ended), ["reentered", &fence]);
    for guard in [outer, again] {
        guard.release().await.unwrap();
        assert!(!spans.only("hold").is_over);
    }
    drop(inner);
    let hold = spans.only("hold");
    assert_eq!((hold.is_over, hold.field("leasehold.end")), (true, "dropped"));
}

#[tokio::test]
async fn a_loss_ends_the_hold_as_an_error_while_the_guard_lives() {
    let (spans, _listening) = Spans::filtered(ON);
    let world = World::new();
    let (ours, theirs) = (world.runtime(1), world.runtime(2));
    let guard = lock(&ours).acquire().await.unwrap();
    theirs.force_release(World::NAME).await.unwrap();
    world.settle().await;
    let hold = spans.only("hold");
    assert_eq!((hold.is_over, hold.field("leasehold.end")), (true, "lost"));
    let [code, kind, why] = hold.fields(ERROR);
    assert_eq!((code, kind), ("ERROR", "force_released"));
    assert!(why.contains("force"), "{why}");
    assert!(guard.release().await.is_err());

    let owner = ours.owner();
    let acquire = lock(&ours).acquire().owner(&owner);
    let guard = acquire.max_hold(secs(2)).await.unwrap();
    world.pass(secs(3)).await;
    let hold = spans.named("hold").pop().unwrap();
    let ended = ["leasehold.end", "error.type"];
    assert_eq!((hold.is_over, hold.fields(ended)), (true, ["lost", "max_hold"]));
    // The owner has to stop.
    assert!(lock(&ours).acquire().owner(&owner).await.is_err());
    let acquire = spans.named("acquire").pop().unwrap();
    assert_eq!(acquire.fields(["leasehold.outcome", "error.type"]), ["lost", "lost"]);
    drop(guard);

    // Its own process asked for this one.
    let guard = lock(&theirs).acquire().await.unwrap();
    let _ = theirs.shutdown(secs(1)).await;
    let hold = spans.named("hold").pop().unwrap();
    let ended = ["leasehold.end", "error.type", "otel.status_code"];
    assert_eq!((hold.is_over, hold.fields(ended)), (true, ["lost", "", ""]));
    drop(guard);
}

/// Each lock of several, a closure, and a run: all of them go through an acquire.
#[tokio::test]
async fn every_way_to_a_lease_has_its_spans() {
    let (spans, _listening) = Spans::filtered(ON);
    let world = World::new();
    let locks = world.runtime(1);
    let work = async {
        drop(locks.all(["a", "b"]).unwrap().acquire().await.unwrap());
        lock(&locks).with_ok(async |_| world.pass_quietly(Duration::ZERO).await).await.unwrap();
        let run = locks.once("form").unwrap().label("request 7").begin().await.unwrap();
        assert!(matches!(run, Begun::First(_)));
    };
    work.instrument(info_span!("request")).await;
    let names = ["a", "b", World::NAME, "form"];
    for kind in ["acquire", "hold"] {
        let seen = spans.named(kind);
        assert_eq!(seen.len(), names.len(), "{seen:?}");
        for (span, name) in seen.iter().zip(names) {
            assert_eq!((span.parent, span.field("leasehold.lock")), (Some("request"), name));
            assert!(span.is_over);
        }
        assert_eq!(seen[3].field("leasehold.label"), "request 7");
    }
}

/// The caller's span is that in which the call was made, wherever it is polled later.
#[tokio::test]
async fn a_hold_belongs_to_the_span_in_which_the_call_began() {
    let (spans, _listening) = Spans::filtered(ON);
    let world = World::new();
    let locks = world.runtime(1);
    let held = lock(&locks).acquire().await.unwrap();
    let mut waiting = Box::pin(lock(&locks).acquire());
    let request = info_span!("request");
    let first = std::future::poll_fn(|cx| std::task::Poll::Ready(waiting.as_mut().poll(cx)));
    assert!(first.instrument(request).await.is_pending());
    held.release().await.unwrap();
    let guard = waiting.instrument(info_span!("another")).await.unwrap();
    let parents = ["acquire", "hold"].map(|name| spans.named(name).pop().unwrap().parent);
    assert_eq!(parents, [Some("request"); 2]);
    drop(guard);
}

#[tokio::test]
async fn a_filter_turns_them_on_and_off() {
    let seen = async |filter: &str| {
        let (spans, _listening) = Spans::filtered(filter);
        let world = World::new();
        drop(lock(&world.runtime(1)).acquire().await.unwrap());
        world.pass(millis(1)).await;
        (spans.named("acquire").len(), spans.named("hold").len())
    };
    for on in ["debug", "leasehold=debug", "leasehold::spans=debug", ON] {
        assert_eq!(seen(on).await, (1, 1), "{on}");
    }
    for off in ["info", "debug,leasehold::spans=off", "leasehold=info", "off"] {
        assert_eq!(seen(off).await, (0, 0), "{off}");
    }
}
