use std::{thread, time::Duration};

use leasehold::{Guard, Released};
use leasehold_testkit::RedisServer;

use super::{scene, two_believers};
use crate::support::{
    crew::{Crew, Plan},
    lease,
    matrix::row,
    naive::{NaiveHeld, NaiveLock},
    wait,
};

row! {
    slow_server: protected, control;
    fault: "the server sleeps again and again, each time shorter than the ttl",
    right: "leases survive; renewals do not wait behind other calls",
    control: "a validity that begins with the reply",
}

const TTL: Duration = Duration::from_secs(4);
/// Longer than it takes until a renewal is due.
const NAP: Duration = Duration::from_millis(1400);
/// Leases that are held meanwhile, and calls that pile up.
const LEASES: usize = 20;
const CALLS: usize = 500;

fn protected() -> String {
    let plan = Plan { ttl: TTL, ..Plan::PROTECTED };
    let server = RedisServer::start();
    let mut crew = Crew::start(&plan, &server.url());
    crew.work(20);
    crew.halt(0);
    scene::run(naps(&server));
    crew.resume(0);
    crew.work(20);
    let finished = crew.finish();
    let summary = finished.history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
    assert_eq!((summary.lost, summary.refused), (0, 0), "{summary:?}");
    scene::leaves_nothing(&server);
    format!(
        "{LEASES} leases and those of other tasks survived {CALLS} calls that waited in 2 pauses"
    )
}

/// Two naps, behind which calls pile up, while leases are held.
async fn naps(server: &RedisServer) {
    let locks = scene::connect(&server.url(), TTL).await;
    let mut leases = Vec::new();
    for number in 0..LEASES {
        leases.push(scene::take(&locks, &format!("held/{number}")).await);
    }
    let millis = NAP.as_millis().to_string();
    let seconds = NAP.as_secs_f64().to_string();
    for nap in [["CLIENT", "PAUSE", &millis], ["DEBUG", "SLEEP", &seconds]] {
        let pile = tokio::spawn({
            let locks = locks.clone();
            async move {
                let calls = (0..CALLS / 2).map(|number| {
                    let locks = locks.clone();
                    tokio::spawn(async move {
                        let guard = scene::take(&locks, &format!("piled/{number}")).await;
                        guard.release().await
                    })
                });
                let calls: Vec<_> = calls.collect();
                for call in calls {
                    let released = call.await.expect("the task ends");
                    assert_eq!(released.expect("held to the end"), Released::Ended);
                }
            }
        });
        // A sleep is answered when it is over, a pause at once.
        server.command(&nap);
        pile.await.expect("all calls end well");
        // Renewals come through between two naps.
        wait::until("all leases are renewed", || {
            let least = TTL.mul_f64(0.6);
            let of_crew = lease::left(server, scene::LEASE).unwrap_or_default();
            let renewed = |guard: &Guard| guard.remaining() > least;
            leases.iter().all(renewed) && of_crew > least
        })
        .await;
    }
    for guard in leases {
        assert_eq!(guard.release().await.expect("held to the end"), Released::Ended);
    }
}

/// The server executes an acquire, then sleeps, then answers: repeated until both commands reached
/// it in one piece.
fn control() -> String {
    const SHORT: Duration = Duration::from_millis(400);
    const TRIES: usize = 10;
    scene::run(async {
        let server = RedisServer::start();
        let (mut first, mut second) =
            (scene::naive(&server, SHORT).await, scene::naive(&server, SHORT).await);
        for _ in 0..TRIES {
            let known = first.try_acquire().await.expect("an answer").expect("a free lock");
            first.release(&known).await.expect("an answer");
            let late = answered_late(&server, &mut first, SHORT).await;
            let other = second.try_acquire().await.expect("an answer");
            if let Some(other) = other {
                return two_believers::overlap(&late, &other);
            }
            tokio::time::sleep(SHORT).await;
        }
        panic!("the control came to no harm")
    })
}

/// A lease whose grant was answered when it was over on the server.
async fn answered_late(server: &RedisServer, lock: &mut NaiveLock, ttl: Duration) -> NaiveHeld {
    let mut connection = lock.connection.clone();
    server.stop_signal();
    let acquiring = lock.try_acquire();
    let mut sleep = redis::cmd("DEBUG");
    let sleep = sleep.arg("SLEEP").arg((2 * ttl).as_secs_f64());
    let sleeping = sleep.exec_async(&mut connection);
    let waking = async {
        tokio::task::yield_now().await;
        // Both commands lie in the server's socket by then; whether they do, the lease tells.
        thread::sleep(Duration::from_millis(100));
        server.cont_signal();
    };
    let (held, slept, ()) = tokio::join!(acquiring, sleeping, waking);
    slept.expect("the server wakes up");
    held.expect("an answer").expect("a free lock")
}
