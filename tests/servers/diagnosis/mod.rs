//! What a diagnosis finds on real servers, and what a connect does about it.

mod clock;
mod cluster;
mod eviction;
mod masters;
mod memory;
mod persistence;
mod quorum;
mod replicas;
mod rights;
mod sentinel;
mod silence;
mod strictness;
mod well;

use std::time::Duration;

use leasehold::{
    LockRuntime, LockRuntimeBuilder,
    diagnosis::{Diagnosis, Finding, Severity, Strictness, Topic},
};
use leasehold_testkit::{RedisServer, server::RedisServerBuilder};

use crate::support::patient;

/// A server of which nothing is found.
fn sound() -> RedisServerBuilder {
    RedisServer::builder().tcp().arg("appendonly", "yes").arg("maxmemory-policy", "noeviction")
}

/// A builder whose times a busy server keeps, and that examines nothing while it connects.
fn builder() -> LockRuntimeBuilder {
    let minute = Duration::from_secs(60);
    patient::builder().ttl(minute).claim_window(minute).strictness(Strictness::Ignore)
}

async fn connect(url: &str) -> LockRuntime {
    builder().connect(url).await.unwrap_or_else(|error| panic!("{url}: {error}"))
}

async fn diagnose(url: &str) -> Diagnosis {
    connect(url).await.diagnose().await
}

/// The findings about a topic.
fn about(diagnosis: &Diagnosis, topic: Topic) -> Vec<&Finding> {
    diagnosis.findings().iter().filter(|finding| finding.topic == topic).collect()
}

/// The only finding about a topic.
fn the_one(diagnosis: &Diagnosis, topic: Topic) -> &Finding {
    match about(diagnosis, topic)[..] {
        [finding] => finding,
        _ => panic!("not one finding about {topic}:\n{diagnosis}"),
    }
}

/// The place of a server, as findings name it.
fn place(port: Option<u16>) -> String {
    format!("127.0.0.1:{}", port.expect("a port"))
}

/// The promises of a finding, as `P1 P2`.
fn promises(finding: &Finding) -> String {
    let numbers: Vec<_> = finding.promises.iter().map(ToString::to_string).collect();
    numbers.join(" ")
}

/// Checks how bad a finding is, which promises it endangers, and some words of it.
fn tells(finding: &Finding, severity: Severity, endangered: &str, words: &[&str]) {
    assert_eq!(finding.severity, severity, "{finding}");
    assert_eq!(promises(finding), endangered, "{finding}");
    for words in words {
        assert!(finding.to_string().contains(words), "no {words:?} in: {finding}");
    }
}
