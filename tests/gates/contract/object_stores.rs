//! Stores over HTTP on which no gate can rest, or only one whose bytes differ: the damage, and the
//! check that tells it.

use leasehold::fencing::{Admitted, GateError, ObjectGate};
use leasehold_testkit::gates::{Relay, Upstream, stamp};
use object_store::{ObjectStore, ObjectStoreExt, path::Path};

use crate::s3::{Manner, S3Server, client};

/// What stood at the end, when 41 was held up after its look until 42 had written `body`.
async fn held_up(manner: Manner, body: &'static str) -> (String, Result<Admitted, GateError>) {
    let server = S3Server::start(manner).await;
    let relay = Relay::before(Upstream::Tcp(server.port())).await;
    let (slow, store) = (client(relay.port()), client(server.port()));
    let (path, quick) = (Path::from("stock/7"), ObjectGate::new(store.clone()));
    quick.put(&path, "9 left", stamp(40, 1)).await.unwrap();
    relay.hold(&stamp(41, 2).to_string());
    let (late, late_path) = (ObjectGate::new(slow), path.clone());
    let late = tokio::spawn(async move { late.put(&late_path, "late", stamp(41, 2)).await });
    relay.held().await;
    let _ = quick.put(&path, body, stamp(42, 3)).await;
    relay.deliver().await;
    let late = late.await.unwrap();
    (read(&*store, &path).await, late)
}

async fn read(store: &dyn ObjectStore, path: &Path) -> String {
    let bytes = store.get(path).await.unwrap().bytes().await.unwrap();
    String::from_utf8(bytes.to_vec()).unwrap()
}

async fn check(manner: Manner, bytes_differ: bool) -> bool {
    let server = S3Server::start(manner).await;
    let gate = ObjectGate::new(client(server.port())).bytes_differ(bytes_differ);
    gate.check(&Path::from("trials")).await.is_ok()
}

#[tokio::test]
async fn a_sound_store_refuses_the_late_write() {
    let (stands, late) = held_up(Manner::default(), "9 left").await;
    assert_eq!(stands, "9 left");
    assert!(matches!(late, Err(GateError::Stale(_))), "{late:?}");
    assert!(check(Manner::default(), false).await);
}

#[tokio::test]
async fn control_a_store_that_ignores_conditions_takes_the_late_write() {
    let ignoring = Manner { ignores_if_match: true, ..Manner::default() };
    let (stands, late) = held_up(ignoring, "8 left").await;
    assert_eq!((&*stands, late.is_ok()), ("late", true));
    assert!(!check(ignoring, true).await);
}

#[tokio::test]
async fn where_etags_come_from_the_bytes_bytes_that_differ_refuse_the_late_write() {
    let of_bytes = Manner { etags_of_bytes: true, ..Manner::default() };
    let (stands, late) = held_up(of_bytes, "8 left").await;
    assert_eq!(stands, "8 left");
    assert!(matches!(late, Err(GateError::Stale(_))), "{late:?}");
    assert!(check(of_bytes, true).await);
}

#[tokio::test]
async fn control_where_etags_come_from_the_bytes_the_same_bytes_take_the_late_write() {
    let of_bytes = Manner { etags_of_bytes: true, ..Manner::default() };
    let (stands, late) = held_up(of_bytes, "9 left").await;
    assert_eq!((&*stands, late.is_ok()), ("late", true));
    assert!(!check(of_bytes, false).await);
}
