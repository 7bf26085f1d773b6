use std::time::Duration;

use leasehold::{
    LockRuntime, Strictness,
    time::{Clock, SystemClock},
};
use leasehold_testkit::QuorumGroup;
use tokio::time::timeout;

use super::{
    naive_quorum::NaiveQuorum,
    scene::{self, LONG},
};
use crate::{
    faults::server::scene::run,
    support::{matrix::row, patient, wait},
};

row! {
    late_server: protected, control;
    fault: "one of three servers answers ten seconds late, from before a process connects on",
    right: "the process connects, and its acquires do not wait for that server",
    control: "a client that waits for the answers of all servers",
}

const LATE: Duration = Duration::from_secs(10);
/// How long the control waits: the other two answer within milliseconds.
const WAITED: Duration = Duration::from_secs(2);
/// Names begin at different servers.
const NAMES: usize = 40;

fn protected() -> String {
    run(async {
        let group = scene::group(3);
        let network = group.network();
        network.proxy(0).delay_all(LATE);
        // To examine a server that is late on purpose takes the whole connect timeout.
        let builder = patient::builder().ttl(LONG).strictness(Strictness::Ignore);
        let locks = wait::soon("it connects", builder.connect(network.url())).await;
        let locks = locks.expect("two of three servers answer");
        let times = times(&locks).await;
        // Far less than one late answer for each, also on a busy machine.
        assert!(times.iter().sum::<Duration>() < LATE * 2, "{times:?}");
        let at = |percent: usize| times[times.len() * percent / 100].as_micros();
        format!(
            "connected; an acquire took {} µs (median), {} µs (p95), {} ms at most",
            at(50),
            at(95),
            times[times.len() - 1].as_millis()
        )
    })
}

/// How long acquires of different names take, in order of length.
async fn times(locks: &LockRuntime) -> Vec<Duration> {
    let mut times = Vec::new();
    for name in (0..5 * NAMES).map(|number| format!("name-{}", number % NAMES)) {
        let began = SystemClock.now();
        let acquiring = locks.lock(name).expect("a name").acquire().wait(wait::CEILING);
        let guard = acquiring.await.expect("a free lock");
        times.push(SystemClock.now().saturating_since(began));
        guard.release().await.expect("held to the end");
    }
    times.sort_unstable();
    times
}

fn control() -> String {
    run(async {
        let group = QuorumGroup::start(3);
        let quorum = NaiveQuorum::connect(&group, LONG).await;
        group.pause(0);
        let asked = timeout(WAITED, quorum.ask_all()).await;
        assert!(asked.is_err(), "the control came to no harm");
        let key = "naive:{a}";
        let taken = |number: usize| group.server(number).query::<bool>(&["EXISTS", key]);
        assert!(taken(1) && taken(2), "the others did not grant it");
        group.resume(0);
        format!("no answer within {} s, although the other two had granted it", WAITED.as_secs())
    })
}
