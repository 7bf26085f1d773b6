//! Addresses that lead to several masters, and masters that would take writes as replicas.

use leasehold::diagnosis::{Severity, Topic};
use leasehold_testkit::FaultProxy;

use super::{about, builder, connect, diagnose, sound, tells, the_one};

#[tokio::test]
async fn an_address_of_two_masters_is_told() {
    let (one, other) = (sound().start(), sound().start());
    let proxy = FaultProxy::before(&one);
    let locks = connect(&proxy.url()).await;
    assert!(about(&locks.diagnose().await, Topic::Reach).is_empty());
    proxy.lead_to(&[&one, &other]);
    let diagnosis = locks.diagnose().await;
    let words = ["leads to 2 masters", "run_id", "an address of its own"];
    tells(the_one(&diagnosis, Topic::Reach), Severity::Danger, "P1", &words);
}

#[tokio::test]
async fn a_server_that_does_not_tell_its_run_is_told() {
    let server = sound().start();
    server.command(&["ACL", "SETUSER", "app", "on", ">s3cret", "~*", "&*", "+@all", "-info"]);
    let diagnosis = diagnose(&server.url_with("app", "s3cret", 0)).await;
    let words =
        ["INFO is denied", "whether the address leads to one master", "still is a master", "+info"];
    tells(the_one(&diagnosis, Topic::NotExamined), Severity::Notice, "", &words);
}

#[tokio::test]
async fn a_server_that_would_take_writes_as_a_replica_is_told() {
    let server = sound().arg("replica-read-only", "no").start();
    let diagnosis = builder().connect(&server.url()).await.expect("a runtime").diagnose().await;
    let words = ["replica-read-only is no", "set replica-read-only to yes"];
    tells(the_one(&diagnosis, Topic::Replicas), Severity::Danger, "P1", &words);
}
