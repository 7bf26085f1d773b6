use std::time::Duration;

use leasehold_testkit::{LockText, RedisServer};

use super::{scene, two_believers};
use crate::support::{
    crew::{Crew, Plan},
    matrix::row,
};

row! {
    restart_with_data: protected, control;
    fault: "the server is killed and starts with its append-only file, while a lease is held",
    right: "the held lease survives, fences go on, no lease is lost",
    control: "a server without persistence, and a storage that does not compare fences",
}

/// Much longer than a restart takes.
const TTL: Duration = Duration::from_secs(10);

fn protected() -> String {
    let builder = RedisServer::builder().arg("appendonly", "yes");
    let server = builder.arg("appendfsync", "always").start();
    let mut crew = Crew::start(&Plan { ttl: TTL, ..Plan::PROTECTED }, &server.url());
    for index in 0..Plan::PROTECTED.processes {
        crew.work(20);
        let read = crew.halt(index);
        let before = lease(&server);
        server.restart();
        assert_eq!(lease(&server), before, "the lease is not the same");
        assert_eq!(crew.value(), read);
        crew.resume(index);
    }
    crew.work(20);
    let finished = crew.finish();
    let summary = finished.history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
    assert_eq!((summary.lost, summary.refused), (0, 0), "{summary:?}");
    scene::leaves_nothing(&server);
    format!("3 restarts survived by the lease held; {} increments, none lost", summary.increments)
}

/// The first and the last token of the turn that is on.
fn lease(server: &RedisServer) -> [u64; 2] {
    let text = LockText::of(server, scene::LEASE);
    [text.lease().fence, text.last()]
}

fn control() -> String {
    scene::run(async {
        let server = RedisServer::start();
        let mut lock = scene::naive(&server, TTL).await;
        let first = lock.try_acquire().await.expect("an answer").expect("a free lock");
        server.restart();
        let mut lock = scene::naive(&server, TTL).await;
        let second = lock.try_acquire().await.expect("an answer").expect("a forgotten lock");
        two_believers::overlap(&first, &second)
    })
}
