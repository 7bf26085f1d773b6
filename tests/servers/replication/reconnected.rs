//! A new connection has written nothing yet: `WAIT` on it counts what is written there, and not what
//! another connection wrote.
#![expect(clippy::disallowed_methods, reason = "connections are cut from time to time")]

use std::time::Duration;

use leasehold_testkit::{
    proxy::{Action, FaultProxy, Rule},
    server::ReplicatedPair,
};

use super::{asking, assert_unacknowledged, holds, one};
use crate::support::wait;

/// The first copy runs, and its answer is lost; the second finds its lease.
#[tokio::test]
async fn a_repeated_acquire_is_acknowledged_by_itself() {
    let pair = ReplicatedPair::start();
    let proxy = FaultProxy::before(&pair.master);
    let locks = asking(one()).connect(proxy.url()).await.expect("the server answers");
    let first = locks.lock("first").unwrap().acquire().await.expect("one replica is there");
    first.release().await.expect("it is held");

    pair.replica.stop_signal();
    for name in ["a", "b", "c"] {
        let lost = Rule::new(Action::Reset).replies().containing(format!("{{{name}}}"));
        let lost = proxy.inject(lost);
        assert_unacknowledged(locks.lock(name).unwrap().try_acquire().await);
        assert!(proxy.struck(lost) > 0, "the first answer is lost");
        wait::until("it is taken back", || !holds(&pair.master, name)).await;
    }
    pair.replica.cont_signal();
    pair.wait_until_in_sync();
    let lost = proxy.inject(Rule::new(Action::Reset).replies().containing("{d}"));
    let guard = locks.lock("d").unwrap().acquire().await.expect("one replica is there");
    assert!(proxy.struck(lost) > 0 && holds(&pair.replica, "d"));
    guard.release().await.expect("it is held");
}

#[tokio::test]
async fn renewals_on_new_connections_are_acknowledged_by_themselves() {
    let pair = ReplicatedPair::start();
    let builder = asking(one()).ttl(Duration::from_secs(3));
    let locks = builder.connect(pair.master.url()).await.expect("the server answers");
    let guard = locks.lock("a").unwrap().acquire().await.expect("one replica is there");
    pair.replica.stop_signal();
    let lost = guard.lost();
    let cutting = async {
        loop {
            tokio::time::sleep(Duration::from_millis(400)).await;
            pair.master.command(&["CLIENT", "KILL", "TYPE", "normal"]);
        }
    };
    tokio::select! {
        biased;
        _ = wait::soon("no replica has its renewals", lost) => {}
        () = cutting => {}
    }
    assert!(!guard.is_held());
    pair.replica.cont_signal();
}
