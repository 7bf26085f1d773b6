use leasehold::{
    LockRuntime,
    once::{Begun, OnceOutcome},
};
use tokio::task::JoinSet;

use super::words::submission;
use crate::support::{World, millis, on_every_store};

/// How many click at once, in how many processes each.
const CLICKS: usize = 40;

async fn clicked(fleet: &[LockRuntime]) -> usize {
    let mut clicks = JoinSet::new();
    for click in 0..CLICKS {
        let submission = submission(&fleet[click % fleet.len()]);
        clicks.spawn(async move {
            let work = |_| async { Ok::<_, std::convert::Infallible>(()) };
            submission.run(work).await.expect("the store answers")
        });
    }
    let outcomes = clicks.join_all().await;
    outcomes.iter().filter(|outcome| matches!(outcome, OnceOutcome::Ran(()))).count()
}

on_every_store! {
    /// Many tasks of several runtimes submit the same thing: one runs.
    async fn of_many_clicks_exactly_one_runs(world: World) {
        let fleet = [1, 2, 3, 4].map(|seed| world.runtime(seed));
        let clicks = tokio::spawn(async move { clicked(&fleet).await });
        world.until("all are answered", async || clicks.is_finished()).await;
        assert_eq!(clicks.await.unwrap(), 1);
    }
}

/// Runs that fail one after the other, and callers in between: nobody runs beside another.
#[tokio::test]
async fn failing_runs_never_overlap_and_one_succeeds_in_the_end() {
    let world = World::new();
    let fleet = [1, 2, 3].map(|seed| world.runtime(seed));
    let (mut runs, mut done) = (0, 0);
    for round in 0..60 {
        let locks = &fleet[round % fleet.len()];
        match submission(locks).begin().await.unwrap() {
            Begun::First(run) => {
                runs += 1;
                assert_eq!(done, 0, "the lock is closed after the success");
                if round == 30 {
                    done += 1;
                    run.succeed().await.unwrap();
                } else {
                    run.fail().await.unwrap();
                }
            }
            Begun::Duplicate(_) => assert_eq!(done, 1, "nobody else runs"),
        }
        world.pass(millis(1)).await;
    }
    assert_eq!((runs, done), (31, 1));
}
