//! Servers that are gone, or hang: that is a finding, and nobody waits for long.

use std::time::Duration;

use leasehold::{
    LockRuntime,
    diagnosis::{Severity, Strictness, Topic},
};
use leasehold_testkit::{RedisServer, Reply, ScriptedPeer};

use super::{about, place, sound, tells, the_one};
use crate::support::wait;

/// Times that a server which hangs is given.
async fn impatient(server: &RedisServer) -> LockRuntime {
    let builder = LockRuntime::builder().strictness(Strictness::Ignore);
    let builder = builder.connect_timeout(Duration::from_secs(2));
    builder.connect(&server.url()).await.expect("a runtime")
}

#[tokio::test]
async fn a_server_that_hangs_is_a_finding() {
    let server = sound().start();
    let locks = impatient(&server).await;
    server.stop_signal();
    let diagnosis = wait::soon("a diagnosis of a server that hangs", locks.diagnose()).await;
    server.cont_signal();
    let finding = the_one(&diagnosis, Topic::Reach);
    tells(finding, Severity::Danger, "", &["cannot connect to Redis", "the server stands still"]);
    assert_eq!(finding.servers, [place(server.port())]);
    assert!(diagnosis.servers()[0].version.is_none());
    assert!(diagnosis.to_string().ends_with(": not reached"), "{diagnosis}");
}

#[tokio::test]
async fn a_server_that_is_gone_is_a_finding() {
    let server = sound().start();
    let locks = impatient(&server).await;
    server.kill();
    let diagnosis = locks.diagnose().await;
    let words = ["cannot connect to Redis", "check that the server runs"];
    tells(the_one(&diagnosis, Topic::Reach), Severity::Danger, "", &words);
    assert_eq!(diagnosis.findings().len(), 1, "{diagnosis}");

    let never = LockRuntime::connect_lazy("redis://127.0.0.1:1").expect("a runtime");
    the_one(&never.diagnose().await, Topic::Reach);
}

#[tokio::test]
async fn a_replica_at_a_plain_address_is_a_finding() {
    let master = sound().start();
    let replica = sound().replica_of(&master).start();
    let locks = LockRuntime::connect_lazy(&replica.url()).expect("a runtime");
    let diagnosis = locks.diagnose().await;
    let words = ["is a replica of 127.0.0.1:", "write the master's address"];
    tells(the_one(&diagnosis, Topic::Reach), Severity::Danger, "", &words);
}

/// What a peer answers that lets a connection be made.
fn greets(words: &[String]) -> Option<Reply> {
    match words[0].to_uppercase().as_str() {
        "HELLO" => Some(Reply::hello("7.0.15", 3)),
        "CLIENT" => Some(Reply::ok()),
        // Without the id of a run.
        "INFO" if words.get(1).is_some_and(|section| section == "server") => Some(Reply::ok()),
        _ => None,
    }
}

#[tokio::test]
async fn a_server_that_falls_silent_is_asked_no_more() {
    let peer = ScriptedPeer::start(|words| greets(words).unwrap_or(Reply::Silence));
    let peer = peer.await.expect("a port");
    let locks = LockRuntime::connect_lazy(&peer.url()).expect("a runtime");
    let diagnosis = wait::soon("a diagnosis", locks.diagnose()).await;
    let notices = about(&diagnosis, Topic::NotExamined);
    assert_eq!(notices.len(), 3, "{diagnosis}");
    for (notice, command) in notices.into_iter().zip(["INFO", "CONFIG GET", "TIME"]) {
        tells(notice, Severity::Notice, "", &[command, "was not answered"]);
    }
    let words = ["the scripts of locks cannot run", "did not answer in time"];
    tells(the_one(&diagnosis, Topic::Scripts), Severity::Danger, "", &words);
    // Behind the first questions, which were sent together, nothing was sent any more.
    let asked = |word: &str| peer.commands().iter().any(|words| words[0] == word);
    assert!(asked("INFO") && !asked("CONFIG") && !asked("TIME") && !asked("EVAL"));
}

#[tokio::test]
async fn what_is_no_redis_is_told_without_a_word_of_what_it_was_sent() {
    // It repeats what it gets, as servers do with commands that they do not know.
    let peer = ScriptedPeer::start(|words| {
        greets(words).unwrap_or_else(|| Reply::error(format!("ERR what is {words:?}?")))
    });
    let peer = peer.await.expect("a port");
    let url = peer.url().replace("://", "://app:s3cret@");
    let locks = LockRuntime::connect_lazy(&url).expect("a runtime");
    let diagnosis = locks.diagnose().await;
    let words = ["INFO was refused", "maxmemory-policy"];
    tells(about(&diagnosis, Topic::NotExamined)[0], Severity::Notice, "", &words);
    assert_eq!(diagnosis.worst(), Some(Severity::Danger), "{diagnosis}");

    let strange = ScriptedPeer::start(|words| greets(words).unwrap_or_else(Reply::ok)).await;
    let strange = strange.expect("a port");
    let url = strange.url().replace("://", "://app:s3cret@");
    let locks = LockRuntime::connect_lazy(&url).expect("a runtime");
    let other = locks.diagnose().await;
    assert!(!about(&other, Topic::NotExamined).is_empty(), "{other}");
    for diagnosis in [diagnosis, other] {
        let shown = format!("{diagnosis} {diagnosis:?}");
        assert!(!shown.contains("s3cret"), "{shown}");
    }
}
