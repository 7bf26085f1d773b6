//! Calls where there is no tokio runtime, or one without timers or IO.

use std::{pin::Pin, time::Duration};

use leasehold::{
    Guard, LockRuntime,
    fencing::{FenceGate, RedisGate},
    once::Begun,
    redis::{RedisConfig, RedisPool},
};
use leasehold_testkit::RedisServer;
use tokio::runtime::{Builder, Runtime};

use crate::support::{
    patient,
    wait::{self, without_tokio},
};

type Call = Pin<Box<dyn Future<Output = ()>>>;

/// What is missing, and how to run a future there.
type Place = (&'static str, fn(Call));

const PLACES: [Place; 4] = [
    ("no tokio", |call| without_tokio(call)),
    ("no timers", |call| bare(|builder| builder.enable_io(), call)),
    ("no IO", |call| bare(|builder| builder.enable_time(), call)),
    ("neither", |call| bare(|builder| builder, call)),
];

fn bare(enable: impl FnOnce(&mut Builder) -> &mut Builder, call: Call) {
    enable(&mut Builder::new_current_thread()).build().expect("a tokio runtime").block_on(call);
}

const SOON: Duration = Duration::from_millis(100);

async fn held(locks: &LockRuntime, name: &str) -> Guard {
    locks.lock(name).expect("a name").acquire().await.expect("a lease")
}

/// Everything that is asked of a lock runtime and its guards.
async fn use_all(locks: LockRuntime) {
    let (lock, guard) = (locks.lock("a").expect("a name"), held(&locks, "a").await);
    assert!(lock.try_acquire().await.expect("an answer").is_none());
    lock.acquire().wait(SOON).await.expect_err("somebody has it");
    guard.reenter().await.expect("it is held").release().await.expect("a hold less");
    locks.inspect("a").await.expect("an answer");
    let mut list = locks.list("*").expect("a pattern");
    while let Some(listed) = list.next().await {
        listed.expect("an answer");
    }
    drop((locks.health().to_string(), locks.diagnose().await, locks.wait_graph().await));
    guard.release().await.expect("held to the end");
    lock.with(async |_| Ok::<_, ()>(())).await.expect("held to the end");
    drop(locks.all(["b", "c"]).expect("names").acquire().await.expect("leases"));
    let Begun::First(run) = locks.once("form").expect("a name").begin().await.expect("an answer")
    else {
        panic!("nobody ran it before")
    };
    run.succeed().await.expect("confirmed");
    let guard = held(&locks, "d").await;
    locks.force_release("d").await.expect("an answer");
    guard.lost().await;
    let short = lock.acquire().ttl(Duration::from_millis(500)).renew(false).await.expect("a lease");
    short.lost().await;
    let _left = held(&locks, "left").await;
    assert_eq!(locks.drain(SOON).await.held, 1);
    drop(locks.shutdown(wait::CEILING).await);
}

/// While the tokio runtime lives that they were made on.
#[test]
fn locks_work_in_every_place() {
    let home = Runtime::new().expect("a tokio runtime");
    for (place, run) in PLACES {
        eprintln!("{place}");
        let server = RedisServer::start();
        let on_redis = home.block_on(async { patient::builder().connect(&server.url()).await });
        run(Box::pin(use_all(on_redis.expect("the server answers"))));
        let embedded = home.block_on(async { patient::builder().embedded() });
        run(Box::pin(use_all(embedded.expect("good settings"))));
        let own = patient::builder().namespace("own").own_thread();
        let own = without_tokio(own.connect(&server.url()));
        run(Box::pin(use_all(own.expect("the server answers"))));
    }
}

#[test]
fn a_gate_that_was_made_where_nothing_can_connect_says_so() {
    let server = RedisServer::start();
    let locks = patient::builder().own_thread().embedded().expect("good settings");
    let stamp = without_tokio(held(&locks, "gate")).stamp();
    let config = RedisConfig::new(&server.url()).expect("the server's address is one");
    let gate = || RedisGate::new(RedisPool::new(&config).expect("good settings"));
    for (place, run) in PLACES {
        let elsewhere = gate();
        let config = config.clone();
        run(Box::pin(async move {
            let here = RedisGate::new(RedisPool::new(&config).expect("good settings"));
            for gate in [elsewhere, here] {
                let told = gate.admit("r", stamp).await.map(drop);
                let error = told.expect_err("there is nothing to connect on").to_string();
                assert!(error.contains("tokio runtime"), "{place}: {error}");
            }
        }));
    }
    let here = gate();
    wait::on_one_thread(here.admit("r", stamp)).expect("the newest fence");
}
