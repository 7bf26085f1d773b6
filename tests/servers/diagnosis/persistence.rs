//! Servers that keep less than they should over a restart.

use leasehold::{
    diagnosis::{Severity, Topic},
    store::{FencePolicy, FenceSettings},
};
use leasehold_testkit::RedisServer;

use super::{about, builder, diagnose, sound, tells, the_one};

#[tokio::test]
async fn a_server_that_keeps_nothing_is_told_with_its_cure() {
    let server = RedisServer::builder().tcp().start();
    let cure = "set appendonly to yes";
    for (save, words) in [("", "a restart loses every lease"), ("3600 1", "the last snapshot")] {
        server.command(&["CONFIG", "SET", "save", save]);
        let diagnosis = diagnose(&server.url()).await;
        let finding = the_one(&diagnosis, Topic::Persistence);
        tells(finding, Severity::Warning, "P1 P2", &[words, "fences come from the clock", cure]);
    }
    // Without the clock, fences repeat.
    let fencing = FenceSettings::default().policy(FencePolicy::Counter);
    let locks = builder().fencing(fencing).connect(&server.url()).await.expect("a runtime");
    let diagnosis = locks.diagnose().await;
    let finding = the_one(&diagnosis, Topic::Persistence);
    tells(finding, Severity::Danger, "P1 P2", &["fences repeat", cure]);

    server.command(&["CONFIG", "SET", "appendonly", "yes"]);
    assert!(about(&locks.diagnose().await, Topic::Persistence).is_empty());
}

#[tokio::test]
async fn a_file_that_the_machine_may_lose_is_told() {
    let server = sound().arg("appendfsync", "no").start();
    let diagnosis = diagnose(&server.url()).await;
    let finding = the_one(&diagnosis, Topic::Persistence);
    tells(finding, Severity::Warning, "P1 P2", &["appendfsync is no", "everysec"]);
}
