use leasehold_testkit::QuorumGroup;

use super::scene::{self, LONG, NAME};
use crate::{
    faults::server::scene::{connect, take},
    support::{
        forger::{self, Dropped, Forger, GREATEST, counting},
        matrix::row,
        wait,
    },
};

row! {
    forged_at_one_node: protected, control;
    fault: "somebody who may publish at one of three servers, and has no keys, sends messages of every kind",
    right: "every message is dropped and counted: no second believer, and no lease ends",
    control: "a waiter that believes one server",
}

fn protected() -> String {
    counting(waiters_do_not_believe);
    counting(leases_do_not_end);
    "grants, ends and calls from one server: all dropped".into()
}

async fn waiters_do_not_believe(mut dropped: Dropped) {
    let group = scene::group(3);
    let mut forger = Forger::of(group.server(0));
    let (holder, waiter) = (connect(&group.url(), LONG).await, connect(&group.url(), LONG).await);
    let held = take(&holder, NAME).await;
    let waits = waiter.lock(NAME).expect("a name").acquire().wait_forever();
    let waits = tokio::spawn(waits);
    wait::until("it waits", || is_waited_for(&group)).await;
    wait::until("it listens", || forger.runtimes().contains(&waiter.id().to_string())).await;

    forger.tell_holder("wanted", waiter.id(), NAME, 1);
    for fence in [held.fence().get() + 1, GREATEST] {
        forger.grant(waiter.id(), NAME, fence);
        wait::until("it is dropped or believed", || {
            waits.is_finished() || dropped.count() >= forger.said
        })
        .await;
        assert!(!(waits.is_finished() && held.is_held()), "two believers");
    }
    let fence = held.fence();
    held.release().await.expect("held to the end");
    let granted = wait::soon("it has the lock", waits).await.expect("no panic").expect("a lease");
    assert!(granted.fence() > fence && granted.fence().get() < GREATEST / 2, "{granted:?}");
    granted.release().await.expect("held to the end");
    scene::leaves_nothing(&group);
}

/// Whether a server remembers somebody who waits.
fn is_waited_for(group: &QuorumGroup) -> bool {
    let key = format!("leasehold:{{{NAME}}}:waiters");
    group.servers().any(|server| server.query(&["EXISTS", &key]))
}

async fn leases_do_not_end(mut dropped: Dropped) {
    let group = scene::group(3);
    let mut forger = Forger::of(group.server(0));
    let holder = connect(&group.url(), LONG).await;
    let held = take(&holder, NAME).await;
    wait::until("it listens", || forger.runtimes().len() == 1).await;
    // Whatever the fence is: a node knows another one than the runtime.
    forger.tell_holder("force-released", holder.id(), NAME, 2);
    forger.tell_holder("wanted", holder.id(), NAME, 2);
    wait::until("it is dropped or believed", || !held.is_held() || dropped.count() >= forger.said)
        .await;
    held.release().await.expect("a forged message ended no lease");
}

fn control() -> String {
    let group = QuorumGroup::start(3);
    forger::believes_its_channel(group.server(0));
    "the waiter believes one of three servers, and the holder still has the lock".into()
}
