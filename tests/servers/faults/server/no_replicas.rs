use std::time::Duration;

use leasehold::Released;
use leasehold_testkit::RedisServer;

use super::{
    refusal,
    scene::{self, set},
};
use crate::support::{matrix::row, wait};

row! {
    no_replicas: protected;
    fault: "the master has lost its replicas, and accepts no writes (min-replicas-to-write)",
    right: "a clear error; nothing is written; held leases are lost; free afterwards",
}

const TTL: Duration = Duration::from_secs(2);

fn protected() -> String {
    scene::run(async {
        let server = RedisServer::start();
        let locks = scene::connect(&server.url(), TTL).await;
        let held = scene::take(&locks, "held").await;
        set(&server, "min-replicas-to-write", "1");
        let before = server.query::<u64>(&["DBSIZE"]);
        for _ in 0..3 {
            refusal::of(&locks, "free", "NOREPLICAS", "start the replicas that are missing").await;
        }
        assert!(server.query::<u64>(&["DBSIZE"]) <= before);
        assert!(!server.query::<bool>(&["EXISTS", "leasehold:{free}:lease"]));
        // Renewals are writes, too.
        wait::soon("the end of belief", held.lost()).await;
        let waiting = tokio::spawn({
            let locks = locks.clone();
            async move { scene::take(&locks, "held").await }
        });
        set(&server, "min-replicas-to-write", "0");
        let next = waiting.await.expect("a lease");
        assert!(next.fence() > held.fence());
        assert_eq!(next.release().await.expect("held to the end"), Released::Ended);
        let free = scene::take(&locks, "free").await;
        assert_eq!(free.release().await.expect("held to the end"), Released::Ended);
        "3 clear errors, nothing written; served when replicas were back".into()
    })
}
