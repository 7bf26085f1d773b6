//! What a lock takes in Redis; the name is of 9 bytes, and the label of 21.

use std::num::NonZeroU64;

use leasehold_core::{
    AcquisitionId, RuntimeId,
    store::{AcquireAnswer, Heartbeat},
};
use leasehold_testkit::{
    RedisServer,
    contract::{Calls, alice, secs, ttl},
};

use super::support::{calls, granted, store_on};

/// What all keys of the lock take together.
fn taken(server: &RedisServer) -> u64 {
    let keys: Vec<String> = server.query(&["KEYS", "leasehold:{orders/42}:*"]);
    let size = |key: &String| server.query::<u64>(&["MEMORY", "USAGE", key, "SAMPLES", "0"]);
    keys.iter().map(size).sum()
}

#[tokio::test]
async fn a_lock_takes_little() {
    const FURTHER: u64 = 40;
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    assert_eq!((calls.name().as_str().len(), Calls::LABEL.len()), (9, 21));

    let fence = granted(&calls, alice(1)).await;
    calls.release(alice(1), fence, None).await.expect("release");
    let idle = taken(&server);
    granted(&calls, alice(2)).await;
    let held = taken(&server);
    let mut waiting = Vec::new();
    for number in 0..=FURTHER {
        let runtime = RuntimeId::new(uuid::Uuid::from_u128(u128::from(number) << 64 | 0xb0b));
        let first = Heartbeat { number: 1, claim_window: secs(30) };
        let answer = calls
            .wait(AcquisitionId::new(runtime, 1).with_word(NonZeroU64::MAX), ttl(60), None, first)
            .await;
        assert!(matches!(answer, Ok(AcquireAnswer::Queued(_))), "{answer:?}");
        waiting.push(taken(&server));
    }
    let first = waiting[0] - held;
    let further = (waiting[waiting.len() - 1] - waiting[0]).div_ceil(FURTHER);
    let all = format!("idle {idle}, held {held}, first waiter {first}, each further {further}");
    println!("{all}");
    assert!(idle <= 200 && held <= 450 && first <= 500 && further <= 230, "{all}");
}
