use leasehold_testkit::{
    QuorumGroup,
    proxy::{Action, Rule},
};

use super::scene::{self, LONG, NAME, TRIES};
use crate::{
    faults::server::scene::{connect, run, take},
    support::{matrix::row, raw, wait},
};

row! {
    replies_lost: protected, control;
    fault: "every server runs a command for a lock, and its reply is lost, again and again",
    right: "what nobody believes in is taken back; the lock is had in the end, and free after its release",
    control: "a client that asks all servers with SET NX, and gives up",
}

/// The next reply of each server to a command about the lock is lost, and its connection with it.
fn lost() -> Rule {
    Rule::new(Action::Drop).replies().containing(format!("{{{NAME}}}:lease"))
}

fn protected() -> String {
    run(async {
        let group = scene::group(3);
        let network = group.network();
        let [locks, other] =
            [connect(&network.url(), LONG).await, connect(&group.url(), LONG).await];
        let mut fence = None;
        for _ in 0..TRIES {
            network.inject(&lost());
            let guard = take(&locks, NAME).await;
            network.inject(&lost());
            assert!(fence < Some(guard.fence()));
            fence = Some(guard.fence());
            // It may be told only that the lease is gone, which it is.
            let _ = wait::soon("a release ends", guard.release()).await;
            // Long before the ttl.
            take(&other, NAME).await.release().await.expect("held to the end");
        }
        let struck: u64 = network.proxies().map(|proxy| proxy.counts().struck).sum();
        assert!(struck > 0, "nothing was lost");
        scene::leaves_nothing(&group);
        format!("{struck} replies lost in {TRIES} pairs; the lock was free soon after each")
    })
}

fn control() -> String {
    run(async {
        let group = QuorumGroup::start(3);
        let network = group.network();
        let mut given_up = 0;
        for proxy in network.proxies() {
            proxy.inject(Rule::new(Action::Reset).replies().containing("naive"));
            let mut raw = raw::connect(&proxy.url()).await;
            let mut set = redis::cmd("SET");
            set.arg("naive").arg("1").arg("NX").arg("PX").arg(60_000);
            given_up += usize::from(set.query_async::<Option<String>>(&mut raw).await.is_err());
        }
        assert_eq!(given_up, 3, "a reply came");
        let taken = group.servers().filter(|server| server.query::<bool>(&["EXISTS", "naive"]));
        assert_eq!(taken.count(), 3, "the control came to no harm");
        "all three servers keep a lock for a minute that nobody has".into()
    })
}
