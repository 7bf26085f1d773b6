//! A master with replicas, and what it does when it is cut off from them.

use std::time::Duration;

use leasehold::{
    Strictness,
    diagnosis::{Severity, Topic},
    error::ConnectError,
    redis::Replication,
};
use leasehold_testkit::Patience;

use super::{about, builder, connect, place, sound, tells, the_one};
use crate::support::wait;

#[tokio::test]
async fn a_master_that_goes_on_without_its_replicas_is_told() {
    let master = sound().arg("repl-diskless-sync-delay", "0").start();
    let locks = connect(&master.url()).await;
    assert!(about(&locks.diagnose().await, Topic::Replicas).is_empty(), "there is none");

    let replica = sound().replica_of(&master).start();
    let patience = Patience::of(wait::CEILING);
    let in_sight = || async {
        let diagnosis = locks.diagnose().await;
        (diagnosis.servers()[0].replicas == Some(1)).then_some(diagnosis)
    };
    let diagnosis = patience.until_async(in_sight).await.expect("the replica comes in sight");
    let finding = the_one(&diagnosis, Topic::Replicas);
    let cure = "set min-replicas-to-write to 1 and min-replicas-max-lag to 2";
    tells(finding, Severity::Warning, "P1 P2", &["min-replicas-to-write is 0", cure]);
    assert_eq!(finding.servers, [place(master.port())]);

    master.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    // Generous: a replica on a busy machine may be late.
    master.command(&["CONFIG", "SET", "min-replicas-max-lag", "60"]);
    assert!(about(&locks.diagnose().await, Topic::Replicas).is_empty());

    // Now it refuses every write.
    master.command(&["CONFIG", "SET", "min-replicas-to-write", "2"]);
    let diagnosis = locks.diagnose().await;
    let finding = the_one(&diagnosis, Topic::Replicas);
    tells(finding, Severity::Danger, "", &["refuses every write", "min-replicas-to-write is 2"]);
    let scripts = the_one(&diagnosis, Topic::Scripts);
    tells(scripts, Severity::Danger, "", &["cannot run", "NOREPLICAS"]);
    drop(replica);
}

#[tokio::test]
async fn acknowledgements_need_as_many_replicas() {
    let master = sound().arg("repl-diskless-sync-delay", "0").start();
    let one = Replication::wait(1, Duration::from_secs(1)).unwrap();
    let waiting = builder().replication(one);
    let locks = waiting.clone().connect(&master.url()).await.expect("a runtime");
    let diagnosis = locks.diagnose().await;
    let words = ["sees 0 replicas", "acknowledgement of 1 replica", "start the replicas"];
    tells(the_one(&diagnosis, Topic::Replicas), Severity::Danger, "P1", &words);
    let strict = waiting.strictness(Strictness::Refuse);
    let refused = strict.clone().connect(&master.url()).await.expect_err("a refusal");
    assert!(matches!(refused, ConnectError::Refused(_)), "{refused}");

    master.command(&["CONFIG", "SET", "min-replicas-to-write", "1"]);
    master.command(&["CONFIG", "SET", "min-replicas-max-lag", "60"]);
    let _replica = sound().replica_of(&master).start();
    let well = || async { locks.diagnose().await.findings().is_empty().then_some(()) };
    Patience::of(wait::CEILING).until_async(well).await.expect("the replica is enough");
    strict.connect(&master.url()).await.expect("no refusal");

    // The right to wait is taken away.
    master.command(&["ACL", "SETUSER", "default", "-wait"]);
    let finding = locks.diagnose().await;
    let words = ["WAIT is denied to this user", "grant the Redis user +wait"];
    tells(the_one(&finding, Topic::Rights), Severity::Danger, "", &words);
}
