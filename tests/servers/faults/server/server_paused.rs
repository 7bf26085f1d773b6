use std::{thread, time::Duration};

use leasehold::{
    LeaseEnd, LossReason,
    error::{AcquireError, ReleaseError},
};
use leasehold_testkit::RedisServer;

use super::scene;
use crate::support::{
    crew::{Crew, Plan},
    matrix::row,
    patient, wait,
};

row! {
    server_paused: protected, control;
    fault: "the server is stopped (SIGSTOP) past the ttl while a lease is held",
    right: "every call ends during the stop; never two believers; work goes on afterwards",
    control: "a client without deadlines",
}

const TTL: Duration = Duration::from_secs(1);
/// How long the server stands still.
const STOPPED: Duration = Duration::from_millis(1500);

fn protected() -> String {
    let server = RedisServer::start();
    let ended = scene::run(calls_end(&server));
    let mut crew = Crew::start(&Plan::PROTECTED, &server.url());
    crew.work(20);
    crew.halt(0);
    server.stop_signal();
    thread::sleep(STOPPED);
    server.cont_signal();
    crew.resume(0);
    crew.work(20);
    let finished = crew.finish();
    let summary = finished.history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
    assert!(summary.lost > 0 && finished.troubles().count() > 0, "{summary:?}");
    scene::leaves_nothing(&server);
    format!("{ended} calls ended meanwhile; {} increments, none lost", summary.increments)
}

/// Calls of every kind to a server that stands still; returns how many ended.
async fn calls_end(server: &RedisServer) -> usize {
    let builder = patient::builder().ttl(TTL).command_timeout(TTL / 2);
    let locks = builder.connect(&server.url()).await.expect("the server answers");
    let held = scene::take(&locks, "held").await;
    let released = scene::take(&locks, "released").await;
    server.stop_signal();
    let lock = locks.lock("free").expect("a name");
    let waits = wait::soon("the end of a wait", lock.acquire().wait(TTL / 5)).await;
    let Err(AcquireError::Unavailable(outage)) = waits else { panic!("{waits:?}") };
    assert!(outage.error.kind().is_transient(), "{outage}");
    let tries = wait::soon("the end of a try", lock.try_acquire()).await;
    let Err(AcquireError::Unavailable(outage)) = tries else { panic!("{tries:?}") };
    assert!(outage.error.kind().is_transient(), "{outage}");
    let inspected = wait::soon("the end of an inspection", locks.inspect("held")).await;
    assert!(inspected.is_err(), "{inspected:?}");
    // The runtime goes on with it until the lease is over.
    let release = wait::soon("the end of a release", released.release()).await;
    assert!(release.is_err(), "{release:?}");
    let end = wait::soon("the end of belief", held.lost()).await;
    assert_eq!(end, LeaseEnd::Lost(LossReason::Expired));
    let late = wait::soon("the end of a late release", held.release()).await;
    assert!(matches!(late, Err(ReleaseError::Lost(_))), "{late:?}");
    server.cont_signal();
    let again = scene::take(&locks, "held").await;
    again.release().await.expect("a lease that was held to the end");
    6
}

fn control() -> String {
    scene::run(async {
        let server = RedisServer::start();
        let mut lock = scene::naive(&server, TTL).await;
        let held = lock.try_acquire().await.expect("an answer").expect("a free lock");
        server.stop_signal();
        let release = tokio::time::timeout(STOPPED, lock.release(&held)).await;
        server.cont_signal();
        assert!(release.is_err(), "the call ended: {release:?}");
        "a release hung, past the end of its lease".into()
    })
}
