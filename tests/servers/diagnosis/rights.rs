//! What a user may not read is told, and hinders nothing else.

use leasehold::{
    LockRuntime,
    diagnosis::{Severity, Strictness, Topic},
};
use leasehold_testkit::RedisServer;

use super::{about, builder, connect, diagnose, sound, tells, the_one};
use crate::documented_rights::{documented, set_user};

/// A user with the rights that `docs/operations.md` asks for, and with some more or fewer.
fn user(server: &RedisServer, more: &[&str]) -> String {
    set_user(server, &["ACL", "SETUSER", "locks", "reset", "on"].map(str::to_owned));
    set_user(server, &documented()[0]);
    let change = ["ACL", "SETUSER", "locks", "resetpass", ">s3cret"].into_iter();
    server.command(&change.chain(more.iter().copied()).collect::<Vec<_>>());
    server.url_with("locks", "s3cret", 0)
}

#[tokio::test]
async fn what_a_user_may_not_read_is_a_notice() {
    let server = sound().arg("maxmemory", "100mb").arg("maxmemory-policy", "allkeys-lru").start();
    let diagnosis = diagnose(&user(&server, &["-info"])).await;
    let [info, config] = about(&diagnosis, Topic::NotExamined)[..] else { panic!("{diagnosis}") };
    let words = ["INFO is denied", "maxmemory-policy", "appendonly", "replicas", "+info"];
    tells(info, Severity::Notice, "", &words);
    let words = ["CONFIG GET is denied", "min-replicas-to-write", "appendfsync", "+config|get"];
    tells(config, Severity::Notice, "", &words);
    // What needs no more rights was examined, and nothing else is found.
    assert_eq!(diagnosis.findings().len(), 2, "{diagnosis}");
    assert!(diagnosis.servers()[0].clock.is_some());
    for shown in [diagnosis.to_string(), format!("{diagnosis:?}")] {
        assert!(!shown.contains("s3cret"), "{shown}");
    }

    // One of the two is enough to see the policy.
    for rights in [&["+info"][..], &["-info", "+config|get"]] {
        let diagnosis = diagnose(&user(&server, rights)).await;
        the_one(&diagnosis, Topic::NotExamined);
        let finding = the_one(&diagnosis, Topic::Eviction);
        tells(finding, Severity::Danger, "P1 P2 P7", &["allkeys-lru"]);
    }
    let diagnosis = diagnose(&user(&server, &["+info", "+config|get"])).await;
    assert!(about(&diagnosis, Topic::NotExamined).is_empty(), "{diagnosis}");
}

#[tokio::test]
async fn role_counts_the_replicas_where_info_is_denied() {
    let server = sound().start();
    let diagnosis = diagnose(&user(&server, &["-info", "+role", "+config|get"])).await;
    assert_eq!(diagnosis.servers()[0].replicas, Some(0));
    let notice = the_one(&diagnosis, Topic::NotExamined);
    assert!(!notice.what.contains("replicas"), "{notice}");
}

#[tokio::test]
async fn a_managed_service_without_config_is_examined_as_far_as_it_goes() {
    let server = sound().without("CONFIG").start();
    let diagnosis = diagnose(&server.url()).await;
    let notice = the_one(&diagnosis, Topic::NotExamined);
    tells(notice, Severity::Notice, "", &["CONFIG GET does not exist on this server"]);
    assert_eq!(diagnosis.findings().len(), 1, "{diagnosis}");
    // Only what endangers a promise is refused.
    builder().strictness(Strictness::Refuse).connect(&server.url()).await.expect("no refusal");
}

#[tokio::test]
async fn a_right_that_was_taken_away_is_told() {
    let server = sound().start();
    let url = user(&server, &["+info", "+config|get"]);
    let locks = connect(&url).await;
    assert!(locks.diagnose().await.findings().is_empty());
    for (taken, words) in [("-evalsha", "evalsha"), ("-zadd", "ZADD"), ("-subscribe", "subscribe")]
    {
        user(&server, &["+info", "+config|get", taken]);
        let diagnosis = locks.diagnose().await;
        let finding = the_one(&diagnosis, Topic::Rights);
        let endangered = if taken == "-subscribe" { "P8" } else { "" };
        tells(finding, Severity::Danger, endangered, &[words, "grant the Redis user"]);
    }
    user(&server, &["+info", "+config|get", "resetchannels"]);
    let diagnosis = locks.diagnose().await;
    assert!(!about(&diagnosis, Topic::Rights).is_empty(), "{diagnosis}");
}

#[tokio::test]
async fn a_password_that_has_changed_is_told_and_not_shown() {
    let server = sound().start();
    let locks = connect(&user(&server, &[])).await;
    server.command(&["ACL", "SETUSER", "locks", "resetpass", ">other"]);
    let diagnosis = locks.diagnose().await;
    let finding = the_one(&diagnosis, Topic::Reach);
    tells(finding, Severity::Danger, "", &["give the address a user and password"]);
    for shown in [diagnosis.to_string(), format!("{diagnosis:?}")] {
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}

#[tokio::test]
async fn a_lazy_runtime_is_examined_before_its_first_lock() {
    let server = sound().arg("maxmemory-policy", "allkeys-lru").start();
    let locks = LockRuntime::connect_lazy(&server.url()).expect("a runtime");
    the_one(&locks.diagnose().await, Topic::Eviction);
}
