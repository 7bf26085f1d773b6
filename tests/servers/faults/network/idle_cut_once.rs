use std::convert::Infallible;

use leasehold::once::OnceOutcome;
use tokio::task::JoinSet;

use super::idling::{TICKS, instances, nobody_runs, server, until_cut};
use crate::support::{matrix::row, wait};

row! {
    idle_cut_once: protected, || wait::on_one_thread(async { nobody_runs(&server()).await });
    fault: "the server closes idle connections (`timeout 1`) between jobs that must run once",
    right: "three instances call once(..).run(..): one runs each job; no error",
    control: "SET NX on a connection that is kept until a command fails on it",
}

fn protected() -> String {
    wait::on_one_thread(async {
        let net = server();
        let instances = instances(&net).await;
        for tick in 0..=TICKS {
            until_cut(&net).await;
            let mut runs = JoinSet::new();
            for locks in &instances {
                let once = locks.once(format!("report/{tick}")).expect("a name");
                runs.spawn(async move { once.run(|_| async { Ok::<_, Infallible>(()) }).await });
            }
            let outcomes = runs.join_all().await.into_iter();
            let ran = outcomes.filter(|outcome| match outcome {
                Ok(OnceOutcome::Ran(())) => true,
                Ok(OnceOutcome::Duplicate(_)) => false,
                Err(error) => panic!("{error}"),
            });
            assert_eq!(ran.count(), 1, "one runs it");
        }
        assert_eq!(net.server.keys_without_ttl(), [""; 0]);
        format!("{} jobs, each run once, no error", TICKS + 1)
    })
}
