//! Servers without a command that locks need, and proxies that do not know one: each is told at connect,
//! and lasts.

use std::time::Duration;

use leasehold::{
    LockRuntime,
    error::{AcquireError, StoreErrorKind},
};
use leasehold_testkit::{
    FaultProxy, RedisServer, Reply, ScriptedPeer,
    proxy::{Action, Rule},
};

use super::{names, refusal, use_lock};
use crate::support::{patient, wait};

/// What undoes it.
const UNDO: &str = "rename-command";

#[tokio::test]
async fn a_command_that_was_renamed_away_is_named_with_what_needs_it() {
    for (command, purpose) in [
        ("HELLO", "begins each connection"),
        ("SELECT", "chooses the database"),
        ("EVAL", "runs the scripts"),
        ("EVALSHA", "runs the scripts"),
        ("TIME", "by the server's clock"),
        ("DEL", "keeps leases"),
        ("GETEX", "keeps leases"),
        ("ZADD", "keeps the queue"),
        ("HSET", "keeps the queue"),
        ("PUBLISH", "tells those who wait"),
        ("SUBSCRIBE", "tells those who wait"),
    ] {
        let server = RedisServer::builder().tcp().without(command).start();
        let address = format!("127.0.0.1:{}", server.port().expect("a port"));
        let url = server.url_with("", "", 1);
        let (kind, text) = refusal(patient::builder(), &url).await;
        assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
        let refuses = format!("refuses {command}, which ");
        names(&text, &[&refuses, purpose, "nknown", UNDO, &address]);
        assert!(!text.contains("unknown; ") && text.matches("refuses").count() == 1, "{text}");
    }
}

/// It does not wait for what does not pass.
#[tokio::test]
async fn an_acquire_of_a_lazy_runtime_fails_at_once() {
    let server = RedisServer::builder().tcp().without("GETEX").start();
    let locks = patient::builder().connect_lazy(&server.url()).expect("good settings");
    let lock = locks.lock("a").expect("a name");
    let error = lock.acquire().wait(wait::CEILING).await.expect_err("no GETEX");
    let AcquireError::Store(error) = error else { panic!("{error}") };
    assert_eq!(error.kind(), StoreErrorKind::Config, "{error}");
    names(&error.to_string(), &["lock \"a\"", "refuses GETEX", UNDO]);
    assert_eq!(server.calls("eval"), 1, "one check");
}

#[tokio::test]
async fn scripts_that_are_copied_whole_are_told_with_their_setting() {
    let server = RedisServer::builder().tcp().arg("lua-replicate-commands", "no").start();
    if !server.version().can_copy_scripts_whole() {
        drop(patient::builder().connect(&server.url()).await.expect("the setting is ignored"));
        return;
    }
    let (kind, text) = refusal(patient::builder(), &server.url()).await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
    names(&text, &["SET is refused", "after non deterministic", "lua-replicate-commands yes"]);
}

fn without(proxy: &FaultProxy, command: &str, words: &str) {
    let refusal = Action::Answer(format!("-{words}\r\n").into_bytes());
    proxy.inject(Rule::new(refusal).containing(format!("\r\n{command}\r\n")).always());
}

#[tokio::test]
async fn a_proxy_that_does_not_know_a_command_is_told_by_that_command() {
    let server = RedisServer::start();
    for command in ["HELLO", "SELECT", "EVAL", "EVALSHA", "SUBSCRIBE"] {
        for words in [
            "ERR unsupported command",
            "ERR command not supported",
            "ERR Command is not available",
            "ERR unknown command",
            // Nobody knows these words.
            "ERR we would rather not",
        ] {
            let proxy = FaultProxy::before(&server);
            without(&proxy, command, words);
            let (kind, text) = refusal(patient::builder(), &proxy.url_with("", "", 1)).await;
            assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
            let refuses = format!("a proxy before it, refuses {command}, which ");
            names(&text, &[&refuses, words, "proxy", &format!("127.0.0.1:{}", proxy.port())]);
        }
    }
}

#[tokio::test]
async fn what_a_proxy_says_of_an_outage_passes() {
    let server = RedisServer::start();
    for words in
        ["LOADING Redis is loading the dataset", "ERR upstream failure", "ERR no upstream host"]
    {
        for command in ["HELLO", "EVALSHA", "SUBSCRIBE"] {
            let proxy = FaultProxy::before(&server);
            without(&proxy, command, words);
            let (kind, text) = refusal(patient::builder(), &proxy.url()).await;
            assert_eq!(kind, Some(StoreErrorKind::Definite), "{command}: {text}");
        }
    }
}

/// Where Redis has been before, another answer may pass.
#[tokio::test]
async fn a_proxy_that_refuses_after_it_has_worked_does_so_for_now() {
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    let locks = patient::builder().connect(&proxy.url()).await.expect("all is well");
    use_lock(&locks).await;
    without(&proxy, "HELLO", "ERR not now");
    proxy.reset_all();
    let lock = locks.lock("a").expect("a name");
    let waiting = tokio::spawn(lock.acquire().wait(wait::CEILING).into_future());
    wait::until("a refusal", || proxy.counts().struck > 0).await;
    proxy.heal();
    let guard = wait::soon("a lease", waiting).await.expect("a task").expect("a lease");
    guard.release().await.expect("held to the end");
}

#[tokio::test]
async fn what_closes_at_hello_may_be_a_proxy() {
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    proxy.inject(Rule::new(Action::Cut).containing("\r\nHELLO\r\n").always());
    let (kind, text) = refusal(LockRuntime::builder(), &proxy.url()).await;
    assert_eq!(kind, Some(StoreErrorKind::Definite), "{text}");
    names(&text, &["a proxy that does not know HELLO", "maxclients", "expect TLS (rediss://)"]);
}

/// Commands that are under way together are told together.
#[tokio::test]
async fn what_closes_after_hello_is_told_by_the_command_that_it_read() {
    let server = RedisServer::start();
    for (command, database) in [("SELECT", 1), ("CLIENT", 0), ("INFO", 0), ("SUBSCRIBE", 0)] {
        let proxy = FaultProxy::before(&server);
        proxy.inject(Rule::new(Action::Cut).containing(format!("\r\n{command}\r\n")).always());
        let url = proxy.url_with("", "", database);
        let (kind, text) = refusal(patient::builder(), &url).await;
        assert_eq!(kind, Some(StoreErrorKind::Definite), "{text}");
        let (_, told) = text
            .split_once("HELLO was answered, and the connection ended at ")
            .unwrap_or_else(|| panic!("{command}: {text}"));
        names(told, &[command, " on, or go around it"]);
        assert!(!text.contains("maxclients"), "{text}");
    }
}

#[tokio::test]
async fn a_command_that_a_proxy_swallows_is_named() {
    let server = RedisServer::start();
    for command in ["CLIENT", "INFO"] {
        let proxy = FaultProxy::before(&server);
        proxy.inject(Rule::new(Action::Drop).containing(format!("\r\n{command}\r\n")).always());
        let builder = LockRuntime::builder().connect_timeout(Duration::from_secs(4));
        let (kind, text) = refusal(builder, &proxy.url()).await;
        assert_eq!(kind, Some(StoreErrorKind::Definite), "{text}");
        let silent = format!("HELLO was answered, and {command} was not answered in time");
        names(&text, &[&silent, "does not pass the command on"]);
        assert!(!text.contains("the address is right"), "{text}");
    }
}

/// The answer to the next command comes in the place of its own.
#[tokio::test]
async fn a_command_that_is_swallowed_alone_is_named() {
    for swallowed in ["CLIENT", "INFO"] {
        let peer = ScriptedPeer::start(move |words| match &*words[0].to_uppercase() {
            word if word == swallowed => Reply::Silence,
            "HELLO" => Reply::hello("7.0.15", 3),
            "INFO" => Reply::bulk("run_id:1"),
            _ => Reply::ok(),
        });
        let peer = peer.await.expect("a port");
        let builder = LockRuntime::builder().connect_timeout(Duration::from_secs(4));
        let (kind, text) = refusal(builder, &peer.url()).await;
        assert_eq!(kind, Some(StoreErrorKind::Definite), "{text}");
        names(&text, &[&format!("HELLO was answered, and {swallowed} was not answered in time")]);
    }
}

#[tokio::test]
async fn a_script_that_is_not_answered_is_told_by_its_command() {
    let server = RedisServer::start();
    for command in ["EVAL", "EVALSHA"] {
        for action in [Action::Drop, Action::Cut] {
            let proxy = FaultProxy::before(&server);
            proxy.inject(Rule::new(action).containing(format!("\r\n{command}\r\n")).always());
            let builder = LockRuntime::builder().command_timeout(Duration::from_secs(3));
            let (kind, text) = refusal(builder, &proxy.url()).await;
            assert_eq!(kind, Some(StoreErrorKind::Definite), "{text}");
            let silent = format!("no answer to {command}: ");
            names(&text, &[&silent, "let a proxy before the server pass EVAL and EVALSHA on"]);
        }
    }
}

/// The first answer comes within the connect timeout, all together do not.
#[tokio::test]
async fn a_server_that_answers_too_slowly_is_not_told_as_one_that_is_not_there() {
    let server = RedisServer::start();
    let proxy = FaultProxy::before(&server);
    // Each way: the second answer is too late, however fast the machine is.
    proxy.delay_all(Duration::from_millis(1800));
    let builder = LockRuntime::builder().connect_timeout(Duration::from_secs(6));
    let (kind, text) = refusal(builder, &proxy.url()).await;
    assert_eq!(kind, Some(StoreErrorKind::Definite), "{text}");
    names(&text, &["HELLO was answered", "answers too slowly", "connect_timeout()"]);
}
