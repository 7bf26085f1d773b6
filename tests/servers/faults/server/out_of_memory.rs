use std::time::Duration;

use leasehold::Released;
use leasehold_testkit::RedisServer;

use super::{
    refusal,
    scene::{self, set},
};
use crate::support::{lease, matrix::row, wait};

row! {
    out_of_memory: protected, control;
    fault: "the server is out of memory (noeviction) while a lease is held",
    right: "a clear error for acquires; renewal, re-entry and release work",
    control: "a release script that writes the releaser's name before it deletes",
}

const TTL: Duration = Duration::from_secs(2);
const LEASE: &str = "leasehold:{held}:lease";

fn fill(server: &RedisServer) {
    server.command(&["DEBUG", "POPULATE", "2000", "filler", "64"]);
    set(server, "maxmemory", "1mb");
}

fn protected() -> String {
    scene::run(async {
        let server = RedisServer::start();
        let locks = scene::connect(&server.url(), TTL).await;
        let others = scene::connect(&server.url(), TTL).await;
        let held = scene::take(&locks, "held").await;
        fill(&server);
        refusal::of(&locks, "free", "OOM", "raise maxmemory").await;
        assert!(!server.query::<bool>(&["EXISTS", "leasehold:{free}:lease"]));
        let place = others.lock("held").expect("a name").acquire().wait(TTL / 8);
        let error = place.await.expect_err("no memory for a place in the queue").to_string();
        refusal::assert_says(&error, &["lock \"held\"", "OOM", "raise maxmemory"]);
        assert!(!server.query::<bool>(&["EXISTS", "leasehold:{held}:queue"]));

        let inner = wait::soon("a re-entry", held.reenter()).await.expect("the lease is held");
        inner.release().await.expect("the lease is held");
        for _ in 0..3 {
            scene::renewed(&held).await;
        }
        assert!(held.is_held());
        assert_eq!(held.release().await.expect("held to the end"), Released::Ended);
        assert!(!lease::is_held(&server, LEASE));
        set(&server, "maxmemory", "0");
        let again = scene::take(&locks, "free").await;
        assert_eq!(again.release().await.expect("held to the end"), Released::Ended);
        "2 clear errors; 3 renewals, a re-entry and a release went through".into()
    })
}

fn control() -> String {
    let server = RedisServer::start();
    server.command(&["SET", "naive", "1", "PX", "60000"]);
    fill(&server);
    let release = "redis.call('SET', KEYS[2], ARGV[1]) return redis.call('DEL', KEYS[1])";
    let refused = server.try_query::<u64>(&["EVAL", release, "2", "naive", "naive:last", "me"]);
    let error = refused.expect_err("the control came to no harm").to_string();
    assert!(error.contains("OOM"), "{error}");
    assert!(server.query::<bool>(&["EXISTS", "naive"]));
    "the release was refused; the lock stayed taken".into()
}
