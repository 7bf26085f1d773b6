//! A master that Sentinels name: they are examined, and so is the master.

use std::time::Duration;

use leasehold::{
    LockRuntime,
    diagnosis::{Severity, Strictness, Topic},
};
use leasehold_testkit::{Patience, RedisServer, sentinel::SentinelGroup};

use super::{about, diagnose, place, tells, the_one};
use crate::support::wait;

async fn impatient(url: &str) -> LockRuntime {
    let builder = LockRuntime::builder().strictness(Strictness::Ignore);
    let builder = builder.connect_timeout(Duration::from_secs(3));
    builder.connect(url).await.expect("a runtime")
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn sentinels_and_their_master_are_examined() {
    let group = SentinelGroup::start();
    let locks = impatient(&group.url()).await;
    let diagnosis = locks.diagnose().await;
    assert!(about(&diagnosis, Topic::Sentinels).is_empty(), "{diagnosis}");
    let [master] = diagnosis.servers() else { panic!("{diagnosis}") };
    assert_eq!(master.server, place(group.master().port()));
    assert_eq!(master.replicas, Some(2));
    let finding = the_one(&diagnosis, Topic::Replicas);
    tells(finding, Severity::Warning, "P1 P2", &["min-replicas-to-write is 0"]);

    // It has to stop before the Sentinels choose another one, which they do after a second.
    let server = group.master();
    server.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    server.command(&["CONFIG", "SET", "min-replicas-max-lag", "10"]);
    let diagnosis = locks.diagnose().await;
    let finding = the_one(&diagnosis, Topic::Replicas);
    tells(finding, Severity::Warning, "P1 P2", &["for 10s", "after 1s"]);

    // One that hangs.
    let [first, second, third] = group.sentinels() else { panic!("three Sentinels") };
    third.pause();
    let diagnosis = wait::soon("a diagnosis", locks.diagnose()).await;
    let finding = the_one(&diagnosis, Topic::Sentinels);
    tells(finding, Severity::Warning, "", &["the Sentinel tells nothing"]);
    assert_eq!(finding.servers, [place(Some(third.port()))]);
    assert_eq!(diagnosis.servers().len(), 1, "{diagnosis}");

    // Two of three: nobody may be believed anew.
    second.pause();
    let diagnosis = wait::soon("a diagnosis", locks.diagnose()).await;
    let found = about(&diagnosis, Topic::Sentinels);
    assert!(found.iter().all(|one| one.severity == Severity::Danger), "{diagnosis}");
    let words = "no master is named by most Sentinels: 1 of 3 answered";
    assert!(found.iter().any(|one| one.what.contains(words)), "{diagnosis}");
    assert!(diagnosis.servers().is_empty(), "{diagnosis}");
    second.resume();
    third.resume();
    let well =
        || async { about(&locks.diagnose().await, Topic::Sentinels).is_empty().then_some(()) };
    Patience::of(wait::CEILING).until_async(well).await.expect("they are back");

    // One that names another master.
    let other = RedisServer::builder().tcp().start();
    let port = other.port().expect("a port").to_string();
    first.command(&["SENTINEL", "REMOVE", SentinelGroup::MASTER]);
    let diagnosis = locks.diagnose().await;
    let finding = the_one(&diagnosis, Topic::Sentinels);
    tells(finding, Severity::Warning, "P1", &["knows no master named `leasehold`"]);
    first.command(&["SENTINEL", "MONITOR", SentinelGroup::MASTER, "127.0.0.1", &port, "2"]);
    let diagnosis = locks.diagnose().await;
    let lies = format!("names 127.0.0.1:{port} as the master");
    let mut found = about(&diagnosis, Topic::Sentinels).into_iter();
    let liar = found.find(|one| one.what.contains(&lies)).expect("the liar is found");
    tells(liar, Severity::Warning, "P1", &["SENTINEL MONITOR"]);
    assert_eq!(liar.servers, [place(Some(first.port()))]);
}

#[tokio::test]
async fn an_address_that_lists_too_few_sentinels_is_told() {
    let group = SentinelGroup::shared();
    let alone = format!("redis+sentinel://{}/leasehold", place(Some(group.sentinels()[0].port())));
    let diagnosis = diagnose(&alone).await;
    let finding = the_one(&diagnosis, Topic::Sentinels);
    tells(finding, Severity::Warning, "P1", &["lists 1 of 3 Sentinels", "list all Sentinels"]);
}
