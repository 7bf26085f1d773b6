use std::{thread, time::Duration};

use leasehold::Released;
use leasehold_testkit::{Patience, RedisServer};

use super::{refusal, scene};
use crate::support::{matrix::row, wait};

row! {
    loading: protected, control;
    fault: "the server starts again and loads 5,000 keys slowly",
    right: "a clear error for tries; waiters get the lock when the data is loaded",
    control: "a lock that fails at the first error",
}

const TTL: Duration = Duration::from_secs(5);
const KEYS: &str = "5000";
/// The size of a value: while it loads, a server hears clients after every 2 MiB of its file.
const SIZE: &str = "4096";

/// A server whose data takes more than a second to load, during which it hears clients.
fn start() -> RedisServer {
    let builder = RedisServer::builder().arg("key-load-delay", "250");
    let server = builder.arg("rdbcompression", "no").start();
    server.command(&["DEBUG", "POPULATE", KEYS, "filler", SIZE]);
    server.command(&["SAVE"]);
    server
}

fn protected() -> String {
    let server = start();
    thread::scope(|scope| {
        let (connected, restart) = std::sync::mpsc::channel();
        let server = &server;
        scope.spawn(move || restart.recv().map(|()| server.restart()));
        scene::run(async {
            let locks = scene::connect(&server.url(), TTL).await;
            connected.send(()).expect("the thread waits");
            scene::until_refused(server, "LOADING");
            // The first tries find their connections cut.
            let loading = async || {
                let error = locks.lock("free").expect("a name").try_acquire().await.err()?;
                Some(error.to_string()).filter(|said| said.contains("LOADING"))
            };
            let said = Patience::of(wait::CEILING).until_async(loading).await;
            let said = said.expect("the server loads");
            refusal::assert_says(&said, &["lock \"free\"", "(at ", "wait until it has"]);
            refusal::of(&locks, "free", "LOADING", "wait until it has").await;
            let guard = scene::take(&locks, "waited").await;
            assert_eq!(guard.release().await.expect("held to the end"), Released::Ended);
        });
    });
    // The filler, and the counters of the locks.
    assert!(server.query::<u64>(&["DBSIZE"]) > 5000);
    "a clear error; the waiting acquire was served when 5,000 keys were loaded".into()
}

fn control() -> String {
    let server = start();
    thread::scope(|scope| {
        let (connected, restart) = std::sync::mpsc::channel();
        let server = &server;
        scope.spawn(move || restart.recv().map(|()| server.restart()));
        scene::run(async {
            connected.send(()).expect("the thread waits");
            scene::until_refused(server, "LOADING");
            let mut lock = scene::naive(server, TTL).await;
            let error = lock.try_acquire().await.expect_err("the server loads");
            assert_eq!(error.code(), Some("LOADING"), "{error}");
        });
    });
    "failed at the first LOADING, with the lock free".into()
}
