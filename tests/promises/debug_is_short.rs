//! What `Debug` shows of handles: enough to recognize them, whatever the runtime holds.

use leasehold::{
    LockRuntime,
    redis::{RedisConfig, RedisPool},
};

#[tokio::test]
async fn handles_show_themselves_and_not_the_runtime() {
    let locks = LockRuntime::embedded().unwrap();
    let mut guards = Vec::new();
    for n in 0..100 {
        guards.push(locks.lock(format!("many/{n}")).unwrap().acquire().await.unwrap());
    }
    let lock = locks.lock("one").unwrap();
    let guard = lock.acquire().await.unwrap();
    for shown in [
        format!("{locks:?}"),
        format!("{lock:?}"),
        format!("{:?}", lock.acquire()),
        format!("{guard:?}"),
        format!("{:?}", guard.lease()),
    ] {
        assert!(shown.len() < 600 && !shown.contains("many/"), "{shown}");
    }
}

#[test]
fn settings_of_a_server_show_no_credentials() {
    let config = RedisConfig::new("redis://bob:geheim@localhost:7000/1").unwrap();
    let pool = RedisPool::new(&config).unwrap();
    for shown in [format!("{config:?}"), format!("{pool:?}")] {
        assert!(!shown.contains("geheim") && !shown.contains("bob"), "{shown}");
    }
}
