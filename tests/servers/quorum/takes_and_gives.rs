use std::time::Duration;

use leasehold::{
    LockRuntime, LockRuntimeBuilder,
    redis::QuorumSettings,
    time::{Clock, SystemClock},
};
use leasehold_testkit::RedisServer;

/// Servers that know nothing of each other, and the address of all of them.
fn group(nodes: usize) -> (Vec<RedisServer>, String) {
    let servers: Vec<_> = (0..nodes).map(|_| RedisServer::builder().tcp().start()).collect();
    let hosts: Vec<_> = servers
        .iter()
        .map(|server| server.url().trim_start_matches("redis://").trim_end_matches('/').to_owned())
        .collect();
    let url = format!("redis+quorum://{}", hosts.join(","));
    (servers, url)
}

fn builder() -> LockRuntimeBuilder {
    let quorum = QuorumSettings::default()
        .longest_ttl(Duration::from_secs(1))
        .and_then(|quorum| quorum.tolerance(Duration::from_millis(100)))
        .unwrap();
    LockRuntime::builder().ttl(Duration::from_secs(1)).quorum(quorum)
}

#[tokio::test]
async fn a_lock_is_taken_and_given_back() {
    for nodes in [3, 5] {
        let (_servers, url) = group(nodes);
        let locks = builder().connect(url.as_str()).await.unwrap();
        let lock = locks.lock("orders/42").unwrap();
        let mut last = None;
        for _ in 0..50 {
            let guard = lock.acquire().await.unwrap();
            assert!(Some(guard.fence()) > last);
            last = Some(guard.fence());
            assert!(lock.try_acquire().await.unwrap().is_none());
            guard.release().await.unwrap();
        }
        let guard = lock.acquire().await.unwrap();
        SystemClock.sleep_until(SystemClock.now() + Duration::from_secs(3)).await;
        assert!(guard.is_held());
        guard.release().await.unwrap();
    }
}

#[tokio::test]
async fn runtimes_pass_a_lock_to_each_other() {
    let (_servers, url) = group(3);
    let mut tasks = Vec::new();
    for _ in 0..3 {
        let locks = builder().connect(url.as_str()).await.unwrap();
        for _ in 0..4 {
            let locks = locks.clone();
            tasks.push(tokio::spawn(async move {
                let lock = locks.lock("one").unwrap();
                let mut fences = Vec::new();
                for _ in 0..50 {
                    let guard = lock.acquire().await.unwrap();
                    fences.push(guard.fence());
                    guard.release().await.unwrap();
                }
                fences
            }));
        }
    }
    let mut all = Vec::new();
    for task in tasks {
        all.extend(task.await.unwrap());
    }
    let count = all.len();
    all.sort_unstable();
    all.dedup();
    assert_eq!(all.len(), count);
}
