use std::time::Duration;

use leasehold::{
    Fence, Stamp,
    error::StoreErrorKind,
    fencing::{Admitted, GateError, RedisGate},
    redis::{RedisConfig, RedisPool},
};
use leasehold_testkit::{RedisServer, server::ReplicatedPair};

use super::one;

fn stamp(fence: u64) -> Stamp {
    let lease = "00000000-0000-0000-0000-000000000001:1".parse().expect("an id");
    Stamp::new(Fence::try_from(fence).expect("a fence"), lease)
}

fn gate(server: &RedisServer) -> RedisGate {
    let config = RedisConfig::new(server.url()).unwrap().command_timeout(Duration::from_secs(10));
    RedisGate::new(RedisPool::new(&config).unwrap()).replication(one())
}

fn assert_unacknowledged<T: std::fmt::Debug>(outcome: Result<T, GateError>) {
    match outcome {
        Err(GateError::Store(error)) => {
            assert!(error.is_unacknowledged(), "{error}");
            assert_eq!(error.kind(), StoreErrorKind::Indeterminate);
        }
        other => panic!("no replica has it, and yet {other:?}"),
    }
}

/// A write that too few replicas have is unknown, and is repeated under its stamp.
#[tokio::test]
async fn a_gate_tells_a_write_that_a_failover_could_lose() {
    let pair = ReplicatedPair::start();
    let gate = gate(&pair.master);
    assert_eq!(gate.set("k:{1}", "a", stamp(10)).await, Ok(Admitted::First));
    assert_eq!(pair.replica.query::<String>(&["GET", "k:{1}"]), "a");

    pair.replica.stop_signal();
    assert_unacknowledged(gate.set("k:{1}", "b", stamp(11)).await);
    let count = gate.wrap("return redis.call('INCR', KEYS[1])");
    assert_unacknowledged(count.call("n:{1}", ["n:{1}"], [""; 0], stamp(11)).await);
    // A refusal writes nothing, and needs no replica.
    match gate.set("k:{1}", "c", stamp(10)).await {
        Err(GateError::Stale(stale)) => assert_eq!(stale.highest, stamp(11)),
        other => panic!("it is stale, and yet {other:?}"),
    }
    pair.replica.cont_signal();
    pair.wait_until_in_sync();
    assert_eq!(gate.set("k:{1}", "b", stamp(11)).await, Ok(Admitted::Again));
    assert_eq!(pair.replica.query::<String>(&["GET", "k:{1}"]), "b");
}

#[tokio::test]
async fn a_server_without_replicas_has_every_write_unknown() {
    let server = RedisServer::start();
    assert_unacknowledged(gate(&server).set("k:{1}", "a", stamp(10)).await);
}
