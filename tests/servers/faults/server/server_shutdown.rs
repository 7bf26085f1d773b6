use std::{thread, time::Duration};

use leasehold::{LeaseEnd, Released, error::AcquireError};
use leasehold_testkit::RedisServer;

use super::{refusal, scene};
use crate::support::{lease, matrix::row, wait};

row! {
    server_shutdown: protected, control;
    fault: "SHUTDOWN NOSAVE while processes wait, and a start without data",
    right: "tries get a clear error; waiters are served afterwards; the holder learns of the loss",
    control: "a connection that is never made anew",
}

const TTL: Duration = Duration::from_secs(4);
/// Runtimes, and the tasks of each that wait.
const RUNTIMES: usize = 3;
const TASKS: usize = 10;
/// How often the control tries.
const TRIES: usize = 20;

/// The server says good-bye to nobody, and ends.
fn shut_down(server: &RedisServer) {
    // Answered by the end of the connection.
    let _ = server.try_query::<String>(&["SHUTDOWN", "NOSAVE"]);
    wait::block_until("the server has gone", || server.try_query::<String>(&["PING"]).is_err());
}

fn protected() -> String {
    scene::run(async {
        let server = RedisServer::start();
        let holder = scene::connect(&server.url(), TTL).await;
        let held = scene::take(&holder, "a").await;
        let mut runtimes = Vec::new();
        for _ in 0..RUNTIMES {
            runtimes.push(scene::connect(&server.url(), TTL).await);
        }
        let waiters: Vec<_> = runtimes.iter().flat_map(|locks| [locks; TASKS]).cloned().collect();
        let waiters: Vec<_> = waiters
            .into_iter()
            .map(|locks| {
                tokio::spawn(async move {
                    let guard = scene::take(&locks, "a").await;
                    let fence = guard.fence();
                    (fence, guard.release().await)
                })
            })
            .collect();
        let queue = "leasehold:{a}:queue";
        let length = || server.query::<usize>(&["ZCARD", queue]);
        wait::until("all processes wait", || length() == RUNTIMES).await;
        shut_down(&server);

        // Long enough for many attempts: what the last one met is told.
        let short = holder.lock("b").expect("a name").acquire().wait(TTL / 2);
        let told = wait::soon("the end of a wait", short).await.expect_err("nobody answers");
        assert!(matches!(&told, AcquireError::Unavailable(_)), "{told:?}");
        refusal::assert_says(&told.to_string(), &["lock \"b\"", "(at ", "check"]);
        let end = wait::soon("the end of belief", held.lost()).await;
        assert!(matches!(end, LeaseEnd::Lost(_)), "{end:?}");
        assert!(waiters.iter().all(|waiter| !waiter.is_finished()));
        server.restart();

        for waiter in waiters {
            let (fence, released) = wait::soon("a turn", waiter).await.expect("a lease");
            assert_eq!(released.expect("held to the end"), Released::Ended);
            assert!(fence > held.fence());
        }
        assert_eq!(server.keys_without_ttl(), [""; 0]);
        wait::block_until("the lock is free", || !lease::is_held(&server, "leasehold:{a}:lease"));
        format!("a clear error, a loss reported, {} waiters served", RUNTIMES * TASKS)
    })
}

fn control() -> String {
    scene::run(async {
        let server = RedisServer::start();
        let mut lock = scene::naive(&server, TTL).await;
        shut_down(&server);
        server.restart();
        for _ in 0..TRIES {
            thread::sleep(Duration::from_millis(2));
            let tried = lock.try_acquire().await;
            assert!(tried.is_err(), "the control came to no harm: {tried:?}");
        }
        format!("{TRIES} of {TRIES} tries failed on a server that was back")
    })
}
