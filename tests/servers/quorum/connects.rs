//! Addresses of a quorum: logins, certificates, servers that are away.

use std::time::Duration;

use leasehold::{LockRuntime, error::StoreErrorKind};
use leasehold_testkit::QuorumGroup;
use tokio::task::block_in_place;

use crate::{
    connect::{names, refusal, use_lock},
    faults::quorum::scene,
    support::{patient, wait},
};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_connects_while_a_majority_is_up() {
    let group = scene::group(3);
    block_in_place(|| group.kill(1));
    let locks = patient::builder().connect(group.url()).await.expect("two of three are up");
    use_lock(&locks).await;
    block_in_place(|| group.kill(2));
    let builder = LockRuntime::builder().connect_timeout(Duration::from_millis(500));
    let (_, text) = refusal(builder, &group.url()).await;
    names(&text, &["2 of 3 nodes", "no majority"]);
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_servers_may_ask_for_a_login() {
    let group = scene::group(3);
    for server in group.servers() {
        server.command(&["ACL", "SETUSER", "app", "reset", "on", ">s3cret", "~*", "&*", "+@all"]);
        server.command(&["ACL", "SETUSER", "default", "off"]);
    }
    let url = group.url_with("app:s3cret@");
    use_lock(&patient::builder().connect(&*url).await.expect("the login is right")).await;
    let (kind, text) =
        refusal(LockRuntime::builder(), &group.url_with("app:s3cret-of-others@")).await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
    names(&text, &["user and password"]);
}

#[cfg(feature = "tls")]
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn the_servers_may_speak_tls() {
    let group = QuorumGroup::builder(3).tls().start();
    block_in_place(|| group.let_vote());
    let ca = group.server(0).ca_pem().expect("an authority");
    let builder = patient::builder().tls_root_ca(ca);
    let locks = builder.clone().connect(group.url()).await.expect("they are trusted");
    use_lock(&locks).await;
    // The network is as good as any, also when one of the servers is cut off.
    let network = group.network();
    network.cut(&[2]);
    let lazy = builder.connect_lazy(network.url()).expect("good settings");
    let lock = lazy.lock("orders/42").expect("a name");
    let guard = wait::soon("a lease", lock.acquire().wait(wait::CEILING)).await.expect("a lease");
    guard.release().await.expect("held to the end");
    let (kind, text) = refusal(LockRuntime::builder(), &group.url()).await;
    assert_eq!(kind, Some(StoreErrorKind::Config), "{text}");
    names(&text, &["certificate authority"]);
}
