//! `rediss://`, under a private certificate authority.

use leasehold_testkit::{
    RedisServer,
    contract::{alice, ttl},
};

use super::support::{calls, config, connect_with, granted};

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
