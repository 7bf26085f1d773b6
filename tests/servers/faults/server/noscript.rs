use std::time::Duration;

use leasehold_testkit::RedisServer;

use super::scene;
use crate::support::{
    crew::{Crew, Plan},
    matrix::row,
    wait,
};

row! {
    noscript: protected, control;
    fault: "SCRIPT FLUSH between calls and during them",
    right: "there is no error; scripts are sent again",
    control: "a client that sends only the digest of a script",
}

/// Renewals have time on a busy machine.
const TTL: Duration = Duration::from_secs(3);
/// How often the server forgets its scripts.
const FLUSHES: usize = 200;

fn protected() -> String {
    let server = RedisServer::start();
    let plan = Plan { ttl: TTL, ..Plan::PROTECTED };
    let mut crew = Crew::start(&plan, &server.url());
    for _ in 0..FLUSHES {
        crew.work(1);
        server.command(&["SCRIPT", "FLUSH"]);
    }
    // One that holds while it is renewed.
    crew.halt(0);
    let unknown = || server.told("errorstats", "errorstat_NOSCRIPT");
    let before = unknown();
    assert!(before > 0);
    server.command(&["SCRIPT", "FLUSH"]);
    wait::block_until("an unknown script is called", || unknown() > before);
    crew.resume(0);
    crew.work(20);
    let finished = crew.finish();
    let summary = finished.history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
    let seen = finished.troubles().find(|trouble| trouble.contains("NOSCRIPT"));
    assert_eq!((seen, summary.lost, summary.refused), (None, 0, 0), "{summary:?}");
    scene::leaves_nothing(&server);
    format!("{} unknown scripts, no error seen; {} increments", unknown(), summary.increments)
}

fn control() -> String {
    let server = RedisServer::start();
    let take = "return redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 60000)";
    let digest: String = server.query(&["SCRIPT", "LOAD", take]);
    server.command(&["EVALSHA", &digest, "1", "a", "me"]);
    server.command(&["SCRIPT", "FLUSH"]);
    let refused = server.try_query::<String>(&["EVALSHA", &digest, "1", "b", "me"]);
    let error = refused.expect_err("the control came to no harm");
    assert_eq!(error.code(), Some("NOSCRIPT"), "{error}");
    assert!(!server.query::<bool>(&["EXISTS", "b"]));
    "the acquire failed, with the lock free".into()
}
