//! `rediss://`, under a private certificate authority.

use leasehold_core::StoreErrorKind::Config;
use leasehold_testkit::{
    RedisServer,
    contract::{alice, ttl},
};

use super::support::{assert_says, calls, config, connect_with, granted};

#[tokio::test]
async fn a_server_under_a_trusted_authority_is_taken() {
    let server = RedisServer::builder().tls().start();
    let ca = server.ca_pem().expect("a server with TLS has one");
    let store = connect_with(&config(&server.url()).tls_root_ca(ca)).await.expect("trusted");
    let calls = calls(&store);
    let fence = granted(&calls, alice(1)).await;
    calls.renew(&[calls.renewal(alice(1), fence, ttl(60))]).await.expect("renew");
    calls.inspect().await.expect("inspect");
    calls.release(alice(1), fence, None).await.expect("release");
}

#[tokio::test]
async fn a_server_under_another_authority_is_refused() {
    let server = RedisServer::builder().tls().start();
    let other = RedisServer::builder().tls().start();
    let ca = other.ca_pem().expect("a server with TLS has one");
    let wrong = [config(&server.url()).tls_root_ca(ca), config(&server.url())];
    for config in wrong {
        let error = connect_with(&config).await.expect_err("not trusted");
        assert_says(&error, Config, "certificate", "certificate authority");
        assert!(error.to_string().contains("rediss://127.0.0.1:"), "{error}");
    }
}

#[tokio::test]
async fn an_authority_that_is_no_pem_is_refused() {
    let server = RedisServer::builder().tls().start();
    let config = config(&server.url()).tls_root_ca("not a certificate");
    let error = connect_with(&config).await.expect_err("no certificate");
    assert_eq!(error.kind(), Config, "{error}");
}

#[tokio::test]
async fn a_server_without_tls_is_not_taken_for_one_with() {
    let server = RedisServer::builder().tcp().start();
    let url = server.url().replace("redis://", "rediss://");
    let error = connect_with(&config(&url)).await.expect_err("it does not speak TLS");
    assert!(error.to_string().contains("rediss://127.0.0.1:"), "{error}");
}
