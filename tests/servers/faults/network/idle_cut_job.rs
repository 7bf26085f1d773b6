use std::time::Duration;

use leasehold::Released;
use tokio::task::JoinSet;

use super::{
    idling::{TICKS, instances, nobody_runs, server, until_cut},
    net::Net,
};
use crate::support::{lease, matrix::row, wait};

row! {
    idle_cut_job: protected, || wait::on_one_thread(async { nobody_runs(&server()).await });
    fault: "the server closes idle connections (`timeout 1`) between the runs of a scheduled job",
    right: "three instances try it with min_hold: one runs it each time; no error",
    control: "SET NX on a connection that is kept until a command fails on it",
}

/// Long enough to be seen, over long before the next time.
const MINIMUM: Duration = Duration::from_millis(300);

fn protected() -> String {
    wait::on_one_thread(async {
        let net = server();
        let instances = instances(&net).await;
        for _ in 0..=TICKS {
            until_cut(&net).await;
            let mut asking = JoinSet::new();
            for locks in &instances {
                let lock = locks.lock("job").expect("a name");
                asking.spawn(async move { lock.acquire().min_hold(MINIMUM).try_acquire().await });
            }
            let tried = asking.join_all().await.into_iter();
            // It is held until all have tried.
            let mut guards: Vec<_> = tried.filter_map(|guard| guard.expect("no error")).collect();
            assert_eq!(guards.len(), 1, "one runs it");
            let released = guards.remove(0).release().await.expect("held to the end");
            assert!(matches!(released, Released::Ended | Released::Kept { .. }), "{released:?}");
            until_free(&net).await;
        }
        format!("due {} times, run {} times, no error", TICKS + 1, TICKS + 1)
    })
}

/// Waits until the minimum is over.
async fn until_free(net: &Net) {
    let is_free = || !lease::is_held(&net.server, "leasehold:{job}:lease");
    wait::until("the job's lock is free", is_free).await;
}
