use crate::support::{World, lock, millis, secs};

/// Two clocks, one a second behind the other, start the same fast job: without a minimum it runs
/// twice, with one it runs once.
#[tokio::test]
async fn a_fast_job_under_two_clocks_runs_twice_without_a_minimum() {
    for (minimum, runs) in [(secs(0), 2), (secs(5), 1)] {
        let world = World::new();
        let fleet = [1, 2].map(|seed| world.runtime(seed));
        let mut count = 0;
        for locks in &fleet {
            if let Some(guard) =
                lock(locks).acquire().min_hold(minimum).try_acquire().await.unwrap()
            {
                world.pass(millis(20)).await;
                count += 1;
                guard.release().await.unwrap();
            }
            world.pass(secs(1)).await;
        }
        assert_eq!(count, runs, "with a minimum of {minimum:?}");
    }
}
