//! Servers of which nothing is found, and runtimes that have no server.

use std::sync::Arc;

use leasehold::{
    LockRuntime,
    diagnosis::Strictness,
    store::{FenceSettings, MemoryStore},
    time::SystemClock,
};

use crate::support::wait;

use super::{connect, diagnose, place, sound};

#[tokio::test]
async fn nothing_is_found_of_a_sound_server() {
    let server = sound().start();
    let diagnosis = diagnose(&server.url()).await;
    assert!(diagnosis.findings().is_empty(), "{diagnosis}");
    assert!(diagnosis.worst().is_none() && diagnosis.has_server());
    let [examined] = diagnosis.servers() else { panic!("{diagnosis}") };
    assert_eq!(examined.server, place(server.port()));
    assert_eq!(examined.replicas, Some(0));
    assert!(examined.round_trip.is_some() && examined.clock.is_some());
    let version = examined.version.as_deref().expect("a version");
    let number = version.split(' ').nth(1).expect("a number");
    let info: String = server.query(&["INFO", "server"]);
    assert!(info.contains(&format!("_version:{number}")), "{version}: {info}");
    let shown = diagnosis.to_string();
    let url = format!("redis://{}/0", place(server.port()));
    assert!(shown.starts_with(&format!("nothing found at {url}\n\nexamined:\n")), "{shown}");
    assert!(shown.contains(version), "{shown}");
}

#[tokio::test]
async fn a_diagnosis_leaves_nothing_behind() {
    let server = sound().start();
    let locks = connect(&server.url()).await;
    let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    let before: u64 = server.query(&["DBSIZE"]);
    for _ in 0..3 {
        assert!(locks.diagnose().await.findings().is_empty());
    }
    assert_eq!(server.query::<u64>(&["DBSIZE"]), before);
    assert_eq!(server.keys_without_ttl(), [""; 0]);
    guard.release().await.expect("a lease that was held to the end");
}

#[test]
fn a_unix_socket_and_a_thread_of_its_own() {
    let server = sound().start();
    let url = format!("redis+unix://{}", server.socket().display());
    let connecting = async {
        let locks = super::builder().own_thread().connect(&url).await.expect("a runtime");
        locks.diagnose().await
    };
    // Without tokio: everything runs on the runtime's own thread.
    let diagnosis = wait::without_tokio(connecting);
    assert!(diagnosis.findings().is_empty(), "{diagnosis}");
    assert_eq!(diagnosis.servers()[0].server, server.socket().display().to_string());
}

#[tokio::test]
async fn a_runtime_without_a_server_says_so() {
    let store = MemoryStore::new(Arc::new(SystemClock), FenceSettings::default());
    let builder = || LockRuntime::builder().strictness(Strictness::Refuse);
    for locks in [builder().embedded(), builder().on_store(Arc::new(store))] {
        let diagnosis = locks.expect("a runtime").diagnose().await;
        assert!(!diagnosis.has_server() && diagnosis.findings().is_empty());
        assert_eq!(diagnosis.to_string(), "there is no server to examine");
    }
}
