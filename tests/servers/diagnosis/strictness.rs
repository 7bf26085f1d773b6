//! What a connect does about findings.

use leasehold::{
    LockRuntime, Strictness,
    diagnosis::{Severity, Topic},
    error::ConnectError,
};
use leasehold_testkit::{Log, RedisServer};

use super::{builder, sound, the_one};

/// A server that evicts leases, and keeps nothing over a restart.
fn unsound() -> RedisServer {
    let server = RedisServer::builder().tcp().arg("maxmemory", "100mb");
    server.arg("maxmemory-policy", "allkeys-lru").start()
}

async fn use_lock(locks: &LockRuntime) {
    let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    guard.release().await.expect("a lease that was held to the end");
}

#[tokio::test]
async fn refuse_refuses_with_the_findings() {
    let server = unsound();
    server.command(&["ACL", "SETUSER", "app", "on", ">s3cret", "~*", "&*", "+@all"]);
    let url = server.url_with("app", "s3cret", 0);
    let strict = builder().strictness(Strictness::Refuse);
    let error = strict.clone().connect(&url).await.expect_err("a refusal");
    let text = error.to_string();
    for words in
        ["the server is refused", "(P1, P2, P7)", "allkeys-lru", "noeviction", "appendonly"]
    {
        assert!(text.contains(words), "no {words:?} in: {text}");
    }
    assert!(!text.contains('\n') && !format!("{text}{error:?}").contains("s3cret"), "{text}");
    let ConnectError::Refused(diagnosis) = error else { panic!("{error}") };
    assert_eq!(the_one(&diagnosis, Topic::Eviction).severity, Severity::Danger);
    assert_eq!(the_one(&diagnosis, Topic::Persistence).severity, Severity::Warning);

    // The cures lift it.
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    server.command(&["CONFIG", "SET", "appendonly", "yes"]);
    use_lock(&strict.connect(&url).await.expect("no refusal")).await;
}

#[tokio::test]
async fn warn_logs_and_connects() {
    let server = unsound();
    // Warn is the default.
    for builder in [LockRuntime::builder(), builder().strictness(Strictness::Warn)] {
        let (log, _collecting) = Log::as_services_see_it();
        let locks = builder.connect(&server.url()).await.expect("no refusal");
        let lines = log.with("leasehold::diagnosis");
        let [danger, warning] = &lines[..] else { panic!("{lines:?}") };
        assert!(danger.starts_with("ERROR") && danger.contains("allkeys-lru"), "{danger}");
        assert!(danger.contains("P1, P2, P7") && danger.contains("noeviction"), "{danger}");
        assert!(warning.starts_with("WARN") && warning.contains("appendonly"), "{warning}");
        use_lock(&locks).await;
    }
    let sound = sound().start();
    let (log, _collecting) = Log::as_services_see_it();
    LockRuntime::connect(&sound.url()).await.expect("a runtime");
    assert_eq!(log.count("leasehold::diagnosis"), 0, "{:?}", log.lines());
}

#[tokio::test]
async fn ignore_asks_nothing() {
    for (strictness, asks) in [(Strictness::Ignore, false), (Strictness::Warn, true)] {
        let server = unsound();
        let (log, _collecting) = Log::as_services_see_it();
        let locks = builder().strictness(strictness).connect(&server.url()).await;
        use_lock(&locks.expect("a runtime")).await;
        let stats: String = server.query(&["INFO", "commandstats"]);
        assert_eq!(stats.contains("cmdstat_config"), asks, "{stats}");
        assert_eq!(log.tells("leasehold::diagnosis"), asks, "{:?}", log.lines());
    }
}

#[tokio::test]
async fn a_lazy_connection_cannot_refuse() {
    let strict = LockRuntime::builder().strictness(Strictness::Refuse);
    let error = strict.connect_lazy("redis://127.0.0.1:1").expect_err("nothing can be examined");
    assert!(matches!(error, ConnectError::NotExamined), "{error}");
    assert!(error.to_string().contains("use connect()"), "{error}");
}
