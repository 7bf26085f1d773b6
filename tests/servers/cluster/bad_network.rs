//! A Cluster behind a network that loses, doubles, delays and cuts, while a slot moves.

use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, AtomicU64, Ordering},
    },
    time::Duration,
};

use leasehold::LockRuntime;
use leasehold_testkit::proxy::{FaultProxy, Storm};
use tokio::task::{JoinSet, block_in_place};

use super::scene::{a_name_for_each, slot};
use crate::support::{patient, proxied::ProxiedCluster, wait};

const TTL: Duration = Duration::from_secs(3);
const ROUNDS: u64 = 6;

/// Bad, and not so bad that nothing goes on.
fn storm(site: &ProxiedCluster, seed: u64) {
    for (number, proxy) in (0..).zip(&site.proxies) {
        proxy.storm(Storm {
            seed: seed * 10 + number,
            drop_request: 3_000,
            drop_reply: 6_000,
            drop_push: 50_000,
            delay: 20_000,
            max_delay: Duration::from_millis(200),
            duplicate: 10_000,
            reset: 3_000,
            cut: 2_000,
            ..Storm::default()
        });
    }
}

/// A number that only those may count up who have its lock.
#[derive(Default)]
struct Counted {
    value: AtomicU64,
    increments: AtomicU64,
    is_inside: AtomicBool,
}

async fn count(locks: LockRuntime, name: String, counted: Arc<Counted>, is_over: Arc<AtomicBool>) {
    let lock = locks.lock(&*name).expect("a name");
    while !is_over.load(Ordering::SeqCst) {
        let Ok(guard) = lock.acquire().wait(Duration::from_secs(20)).await else { continue };
        let inner = guard.reenter().await;
        // Long enough for the section, also on a busy machine.
        if guard.remaining() > TTL / 3 {
            assert!(!counted.is_inside.swap(true, Ordering::SeqCst), "two holders of {name}");
            let seen = counted.value.load(Ordering::SeqCst);
            tokio::task::yield_now().await;
            counted.value.store(seen + 1, Ordering::SeqCst);
            counted.increments.fetch_add(1, Ordering::SeqCst);
            counted.is_inside.store(false, Ordering::SeqCst);
        }
        if let Ok(inner) = inner {
            let _ = inner.release().await;
        }
        let _ = guard.release().await;
    }
}

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nothing_is_lost_on_a_bad_network_while_a_slot_moves() {
    let site = ProxiedCluster::start();
    let names = a_name_for_each();
    let is_over = Arc::new(AtomicBool::new(false));
    let counted: Vec<_> = names.iter().map(|_| Arc::new(Counted::default())).collect();
    let mut tasks = JoinSet::new();
    for _ in 0..2 {
        let builder = patient::builder().ttl(TTL).command_timeout(Duration::from_secs(1));
        let locks = builder.connect(&*site.url()).await.expect("the network is well");
        for (name, counted) in names.iter().zip(&counted) {
            for _ in 0..3 {
                let (locks, name) = (locks.clone(), name.clone());
                tasks.spawn(count(locks, name, Arc::clone(counted), Arc::clone(&is_over)));
            }
        }
    }
    for round in 0..ROUNDS {
        let values = || counted.iter().map(|one| one.increments.load(Ordering::SeqCst));
        let before: Vec<_> = values().collect();
        storm(&site, round);
        let has_grown = || values().zip(&before).all(|(now, before)| now > before + 20);
        wait::until("work goes on in the storm", has_grown).await;
        let to = usize::try_from(round + 1).expect("a small number") % 3;
        block_in_place(|| site.cluster.migrate(slot(&names[0]), to));
        site.proxies.iter().for_each(FaultProxy::calm);
        let before: Vec<_> = values().collect();
        let has_grown = || values().zip(&before).all(|(now, before)| now > before + 20);
        wait::until("work goes on behind it", has_grown).await;
    }
    is_over.store(true, Ordering::SeqCst);
    while let Some(ended) = wait::soon("the tasks end", tasks.join_next()).await {
        ended.expect("no panic");
    }
    for (name, one) in names.iter().zip(&counted) {
        let (value, increments) =
            (one.value.load(Ordering::SeqCst), one.increments.load(Ordering::SeqCst));
        assert_eq!(value, increments, "{name}");
        assert!(increments > 40 * ROUNDS, "{name}");
    }
}
