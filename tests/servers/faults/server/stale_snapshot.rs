use std::{thread, time::Duration};

use leasehold::ForceReleased;
use leasehold_testkit::{LockText, RedisServer};

use super::{plain_counter, scene};
use crate::support::{crew::Crew, matrix::row};

row! {
    stale_snapshot: protected, control;
    fault: "the server is killed and starts with an old snapshot, long after it was saved",
    right: "the old lease and the old counter are back; fences grow above all that were seen",
    control: "a plain counter",
}

/// The lease in the snapshot is not over when it is back.
const LONG: Duration = Duration::from_secs(600);

fn protected() -> String {
    let server = RedisServer::start();
    let saved = scene::run(async {
        let locks = scene::connect(&server.url(), LONG).await;
        let guard = scene::take(&locks, "value").await;
        server.command(&["SAVE"]);
        let saved = guard.fence().get();
        guard.release().await.expect("a lease that was held to the end");
        saved
    });
    let mut crew = Crew::start(&scene::ONE_TASK, &server.url());
    crew.work(50);
    let read = crew.halt(0);
    let before = last_of(&server);
    server.restart();
    let text = LockText::of(&server, scene::LEASE);
    let (first, last) = (text.lease().fence, text.last());
    assert!(first <= saved && saved <= last && last < before);
    // Its holder has long given it back, and nobody will again.
    let forced = scene::run(async {
        let locks = scene::connect(&server.url(), LONG).await;
        locks.force_release("value").await.expect("an answer")
    });
    assert!(matches!(forced, ForceReleased::Ended { .. }), "{forced:?}");
    crew.until_above(read);
    // A release whose connection was cut is one, if "gone" is all that is known of it.
    thread::sleep(scene::ONE_TASK.ttl);
    crew.resume(0);
    crew.work(20);
    assert!(before < last_of(&server));
    let finished = crew.finish();
    let seen = finished.right();
    let summary = finished.history.check().expect("it was right");
    assert!(summary.refused > 0 && summary.lost > 0, "{summary:?}");
    scene::leaves_nothing(&server);
    seen
}

/// The last token of all.
fn last_of(server: &RedisServer) -> u64 {
    LockText::of(server, scene::LEASE).last()
}

fn control() -> String {
    let save = |server: &RedisServer| drop(server.command(&["SAVE"]));
    plain_counter::damage(&RedisServer::start(), save, RedisServer::restart)
}
