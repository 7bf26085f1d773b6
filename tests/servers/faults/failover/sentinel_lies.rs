use leasehold_testkit::{RedisServer, SentinelGroup};

use crate::{
    faults::server::scene::{self, LEASE},
    support::{
        crew::{Crew, Plan},
        lease,
        matrix::row,
    },
};

row! {
    sentinel_lies: protected, control;
    fault: "one of three Sentinels names another server, which says that it is a master",
    right: "the master that the other two name is used by all; nothing is written elsewhere",
    control: "a client that believes one Sentinel",
}

/// A group whose first Sentinel names another server.
fn start() -> (SentinelGroup, RedisServer) {
    let (group, other) = (SentinelGroup::start(), RedisServer::builder().tcp().start());
    let port = other.port().expect("a port").to_string();
    let liar = &group.sentinels()[0];
    liar.command(&["SENTINEL", "REMOVE", SentinelGroup::MASTER]);
    liar.command(&["SENTINEL", "MONITOR", SentinelGroup::MASTER, "127.0.0.1", &port, "2"]);
    (group, other)
}

fn protected() -> String {
    let (group, other) = start();
    let crew = Crew::start(&Plan::PROTECTED, &group.url());
    crew.work(100);
    let finished = crew.finish();
    let summary = finished.history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
    assert_eq!((summary.lost, summary.refused), (0, 0), "{summary:?}");
    assert_eq!(other.query::<u64>(&["DBSIZE"]), 0);
    scene::leaves_nothing(group.master());
    format!("{}; nothing at the other server", finished.right())
}

fn control() -> String {
    let (group, other) = start();
    let url = format!("{}/{}", group.sentinels()[0].url(), SentinelGroup::MASTER);
    let url = url.replace("redis://", "redis+sentinel://");
    scene::run(async {
        let told_right = scene::connect(&group.url(), Plan::PROTECTED.ttl).await;
        let told_wrong = scene::connect(&url, Plan::PROTECTED.ttl).await;
        let held = scene::take(&told_right, "value").await;
        let also = scene::take(&told_wrong, "value").await;
        assert!(lease::is_held(group.master(), LEASE) && lease::is_held(&other, LEASE));
        assert!(held.is_held() && also.is_held(), "the control came to no harm");
    });
    "two holders at once, at two masters".into()
}
