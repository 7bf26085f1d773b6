use std::time::Duration;

use leasehold::{
    Guard, LockRuntime,
    time::{Clock, Instant, SystemClock},
};
use leasehold_testkit::server::ReplicatedPair;

use super::overlap;
use crate::{
    faults::server::scene,
    support::{lease, matrix::row, wait},
};

row! {
    writable_replica: protected, control;
    fault: "a master with `replica-read-only no` becomes a replica, and goes on taking the writes of who knows it alone",
    right: "from a second later on it grants and renews nothing; a lease from before ends at its own deadline",
    control: "a user who may not run INFO, so that the role is not asked for",
}

const TTL: Duration = Duration::from_secs(3);
const NAMES: [&str; 3] = ["a", "b", "c"];
/// What the users of both arms may do, before a right is taken away.
const USER: [&str; 8] = ["ACL", "SETUSER", "app", "on", ">secret", "~*", "&*", "+@all"];
/// From when on after a demotion all is refused.
const LATEST: Duration = Duration::from_secs(1);

/// A master that was demoted, with connections of a process that does not know it.
struct Demoted {
    pair: ReplicatedPair,
    left_behind: LockRuntime,
    /// Granted and renewed before.
    held: Guard,
    at: Instant,
}

impl Demoted {
    async fn start(right: &str) -> Self {
        let pair = ReplicatedPair::start_with(&[("replica-read-only", "no")]);
        for server in [&pair.master, &pair.replica] {
            server.command(&[&USER[..], &[right]].concat());
        }
        let url = pair.master.url_with("app", "secret", 0);
        let left_behind = scene::connect(&url, TTL).await;
        for name in NAMES {
            scene::take(&left_behind, name).await.release().await.expect("held to the end");
        }
        let held = scene::take(&left_behind, "held").await;
        scene::renewed(&held).await;
        pair.replica.command(&["REPLICAOF", "NO", "ONE"]);
        pair.master.follow(&pair.replica);
        Self { pair, left_behind, held, at: SystemClock.now() }
    }

    async fn a_second_later(&self) {
        SystemClock.sleep_until(self.at + LATEST).await;
    }
}

fn protected() -> String {
    scene::run(async {
        let demoted = Demoted::start("+info").await;
        demoted.a_second_later().await;
        let Demoted { pair, left_behind, held, .. } = demoted;
        for name in NAMES {
            let lock = left_behind.lock(name).expect("a name");
            let refused = lock.try_acquire().await.expect_err("it is a replica").to_string();
            let says = ["READONLY", "the server is a replica of"];
            assert!(says.iter().any(|words| refused.contains(words)), "{refused}");
            let looked = left_behind.inspect(name).await;
            looked.expect_err("what a replica says is no last word");
        }
        wait::soon("the loss", held.lost()).await;
        wait::block_until("it is over there, too", || lease::held(&pair.master).is_empty());
        let follows = scene::connect(&pair.replica.url(), TTL).await;
        for name in NAMES.iter().chain(&["held"]) {
            scene::take(&follows, name).await.release().await.expect("held to the end");
        }
        let count = NAMES.len();
        format!(
            "{count} of {count} tries refused; the lease from before ended; all granted at the new master"
        )
    })
}

fn control() -> String {
    scene::run(async {
        let demoted = Demoted::start("-info").await;
        demoted.a_second_later().await;
        let mut guards = Vec::new();
        for name in NAMES {
            guards.push(scene::take(&demoted.left_behind, name).await);
        }
        let follows = scene::connect(&demoted.pair.replica.url(), TTL).await;
        let granted = scene::take(&follows, NAMES[0]).await;
        let by = overlap::of(&granted, &guards[0]);
        let (count, by) = (guards.len(), by.as_millis());
        format!("{count} of {count} tries granted; two holders believed for {by} ms at least")
    })
}
