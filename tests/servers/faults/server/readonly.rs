use std::time::Duration;

use leasehold::Released;
use leasehold_testkit::RedisServer;

use super::{refusal, scene};
use crate::support::{lease, matrix::row, naive::NaiveLock, pair::Pair, raw, wait};

row! {
    readonly: protected, control;
    fault: "the master becomes a replica, and later the address leads to the new master",
    right: "a clear error until then; connections are made anew; lease and fences go on",
    control: "a connection that is kept as long as it answers",
}

const TTL: Duration = Duration::from_secs(20);
const LEASE: &str = "leasehold:{held}:lease";
/// How often the control tries.
const TRIES: usize = 20;

fn protected() -> String {
    scene::run(async {
        let pair = Pair::start();
        let locks = scene::connect(&pair.url(), TTL).await;
        let guard = scene::take(&locks, "free").await;
        let before = guard.fence();
        guard.release().await.expect("held to the end");
        // Its connection is there when the master is demoted.
        scene::take(&locks, "other").await.release().await.expect("held to the end");
        let held = scene::take(&locks, "held").await;
        wait::block_until("the lease is replicated", || lease::is_held(&pair.replica, LEASE));
        pair.swap();
        let (dialed, written) = (dialed(&pair.master), dbsize(&pair.master));
        refusal::of(&locks, "other", "READONLY", "write the master's address").await;
        let port = pair.replica.port().expect("a port");
        let what = format!("is a replica of 127.0.0.1:{port}");
        for _ in 0..3 {
            refusal::of(&locks, "other", &what, "write the master's address").await;
        }
        // Two of them for the questions of this test.
        assert!(self::dialed(&pair.master) >= dialed + 1 + 2, "connections were kept");
        assert!(dbsize(&pair.master) <= written);

        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { scene::take(&locks, "free").await }
        });
        pair.announce();
        let after = waiting.await.expect("a lease");
        assert!(after.fence() > before, "the fence fell");
        for guard in [after, held] {
            assert_eq!(guard.release().await.expect("held to the end"), Released::Ended);
        }
        assert!(!lease::is_held(&pair.replica, LEASE));
        "4 clear errors; then the waiter was served by the new master".into()
    })
}

fn control() -> String {
    scene::run(async {
        let pair = Pair::start();
        let mut lock = NaiveLock::new(raw::connect(&pair.url()).await, "a", TTL);
        let held = lock.try_acquire().await.expect("an answer").expect("a free lock");
        lock.release(&held).await.expect("an answer");
        pair.swap();
        pair.announce();
        for _ in 0..TRIES {
            let error = lock.try_acquire().await.expect_err("the control came to no harm");
            // Redis 6.2 wraps the code of an error inside a script.
            let told = error.code() == Some("READONLY") || error.to_string().contains("-READONLY");
            assert!(told, "{error}");
        }
        format!("{TRIES} of {TRIES} tries failed, with a new master at the address")
    })
}

/// How many connections a server has been asked for.
fn dialed(server: &RedisServer) -> u64 {
    server.told("stats", "total_connections_received")
}

fn dbsize(server: &RedisServer) -> u64 {
    server.query(&["DBSIZE"])
}
