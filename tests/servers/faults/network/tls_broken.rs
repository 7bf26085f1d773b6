use std::time::Duration;

use leasehold::{LockRuntime, LockRuntimeBuilder, error::ConnectError};
use leasehold_testkit::{
    FaultProxy, RedisServer,
    proxy::{Action, Rule, RuleId},
};

use crate::support::{matrix::row, patient, wait};

row! {
    tls_broken: protected;
    fault: "TLS handshakes and sessions are cut and reset",
    right: "an error in bounded time names the server; nothing is sent in plain text; later all works",
}

/// What no client that speaks TLS says.
const PLAIN: [&str; 4] = ["HELLO", "CLIENT", "EVAL", "PING"];

fn protected() -> String {
    let server = RedisServer::builder().tls().start();
    let proxy = FaultProxy::before_tls(&server);
    wait::on_one_thread(async {
        let spies: Vec<_> = PLAIN.iter().map(|word| spy(&proxy, word)).collect();
        let mut errors = 0;
        for broken in [Action::Cut, Action::Reset] {
            for rule in [Rule::new(broken.clone()), Rule::new(broken).replies()] {
                let rule = proxy.inject(rule.always());
                let outcome = wait::soon("connect gives up", connect(&server, &proxy)).await;
                let error = outcome.expect_err("no handshake");
                assert!(matches!(error, ConnectError::Store(_)), "{error}");
                assert!(error.to_string().contains(&proxy.url()), "{error}");
                assert!(proxy.struck(rule) > 0);
                proxy.remove(rule);
                errors += 1;
            }
        }
        let locks = connect(&server, &proxy).await.expect("a handshake");
        let lock = locks.lock("a").expect("a name");
        let guard = lock.acquire().wait(wait::CEILING).await.expect("a lease");
        // In the middle of a session, too.
        assert!(proxy.reset_all() > 0);
        let inner = wait::soon("it goes on", guard.reenter()).await.expect("the lease is held");
        assert_eq!(inner.id(), guard.id());
        drop(inner);
        guard.release().await.expect("held to the end");
        assert!(proxy.url().starts_with("rediss:"));
        assert!(
            spies.iter().all(|spy| proxy.struck(*spy) == 0),
            "something was said in plain text"
        );
        assert_eq!(locks.shutdown(wait::CEILING).await.held, 0);
        format!("{errors} handshakes broken: errors, no plain text; then it goes on")
    })
}

/// Counts requests that contain a word.
fn spy(proxy: &FaultProxy, word: &str) -> RuleId {
    proxy.inject(Rule::new(Action::Delay(Duration::ZERO)).containing(word).always())
}

async fn connect(server: &RedisServer, proxy: &FaultProxy) -> Result<LockRuntime, ConnectError> {
    let ca = server.ca_pem().expect("a server with TLS has one");
    let builder: LockRuntimeBuilder = patient::builder().tls_root_ca(ca);
    builder.connect(&proxy.url()).await
}
