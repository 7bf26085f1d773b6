use std::{sync::Arc, time::Duration};

use leasehold::{
    AcquisitionId, Fence, Stamp,
    error::StoreErrorKind,
    fencing::{Admitted, FenceGate, GateError, RedisGate},
    redis::{RedisConfig, RedisPool},
};
use leasehold_core::{Entropy, SystemEntropy};
use leasehold_testkit::RedisServer;
use tokio::{sync::Mutex, task::JoinSet};

use crate::support::{matrix::row, raw, wait};

row! {
    pool_exhausted: protected, control;
    fault: "the only connection of a pool is in use by a call without an answer (CLIENT PAUSE)",
    right: "the calls behind it wait for one timeout, then fail with the cause",
    control: "one connection behind a mutex, without timeouts",
}

const CALLS: usize = 20;
/// How long a call may take.
const CALL: Duration = Duration::from_millis(300);

fn stamp(fence: u64) -> Stamp {
    let lease = AcquisitionId::new(SystemEntropy.runtime_id(), 1);
    Stamp::new(Fence::try_from(fence).expect("a token"), lease)
}

fn gate(server: &RedisServer) -> RedisGate {
    let config = RedisConfig::new(&server.url()).expect("an address").pool_size(1);
    let config = config.command_timeout(CALL).connect_timeout(wait::CEILING);
    RedisGate::new(RedisPool::new(&config).expect("settings that can work"))
}

/// Lets the server answer no write; the check of a pooled connection goes on.
fn pause(server: &RedisServer) {
    server.command(&["CLIENT", "PAUSE", "60000", "WRITE"]);
}

fn protected() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        let (gate, newer) = (gate(&server), stamp(2));
        assert_eq!(gate.advance("a", stamp(1)).await, Ok(Admitted::First));
        pause(&server);
        let mut calls = JoinSet::new();
        for _ in 0..CALLS {
            let gate = gate.clone();
            calls.spawn(async move { gate.set("a", "paid", newer).await });
        }
        let outcomes = wait::soon("errors, while writes are not answered", calls.join_all()).await;
        let (mut waited, mut unanswered) = (0, 0);
        for outcome in outcomes {
            let Err(GateError::Store(error)) = outcome else { panic!("{outcome:?}") };
            match error.kind() {
                StoreErrorKind::Definite => {
                    let words =
                        ["the gate of \"a\"", "no pooled connection", "raise the pool size"];
                    assert!(words.iter().all(|word| error.to_string().contains(word)), "{error}");
                    waited += 1;
                }
                StoreErrorKind::Indeterminate => {
                    assert!(
                        error.to_string().contains("whether the command ran is unknown"),
                        "{error}"
                    );
                    unanswered += 1;
                }
                _ => panic!("{error}"),
            }
        }
        server.command(&["CLIENT", "UNPAUSE"]);
        assert!(waited > 0 && unanswered > 0, "{waited} waited, {unanswered} unanswered");
        // The connection that was given up is replaced, and the gate goes on.
        let went_on = wait::soon("it goes on", async {
            loop {
                if let Ok(admitted) = gate.set("a", "paid", newer).await {
                    return admitted;
                }
            }
        });
        assert!(matches!(went_on.await, Admitted::Newer | Admitted::Again));
        let clients = server.told("clients", "connected_clients");
        assert!(clients <= 3, "{clients} connections");
        format!("{waited} told no connection was free, {unanswered} unanswered; went on")
    })
}

fn control() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::start();
        let pool = Arc::new(Mutex::new(raw::connect(&server.url()).await));
        pause(&server);
        let mut calls = JoinSet::new();
        for _ in 0..CALLS {
            let pool = Arc::clone(&pool);
            calls.spawn(async move {
                let mut connection = pool.lock().await;
                redis::cmd("SET").arg("a").arg("paid").query_async::<String>(&mut *connection).await
            });
        }
        let bound = 3 * CALL;
        let ended = tokio::time::timeout(bound, calls.join_next()).await;
        server.command(&["CLIENT", "UNPAUSE"]);
        assert!(ended.is_err(), "the control came to no harm: {ended:?}");
        wait::soon("all end when writes go on", calls.join_all()).await;
        format!("{CALLS} calls wait for as long as the first")
    })
}
