use leasehold::once::Begun;

use super::words::submission;
use crate::support::{World, lock, millis, secs};

/// Without a window, and under a mere lock, a second click that comes after the first run is run
/// again; with the window it is told.
#[tokio::test]
async fn without_the_window_a_late_double_click_runs_twice() {
    let world = World::new();
    let locks = world.runtime(1);
    let mut runs = [0; 3];
    for _ in 0..2 {
        if let Some(guard) = lock(&locks).try_acquire().await.unwrap() {
            runs[0] += 1;
            guard.release().await.unwrap();
        }
        world.pass(millis(200)).await;
    }
    for (index, window) in [(1, secs(0)), (2, secs(60))] {
        for _ in 0..2 {
            if let Begun::First(run) = submission(&locks).window(window).begin().await.unwrap() {
                runs[index] += 1;
                run.succeed().await.unwrap();
            }
            world.pass(millis(200)).await;
        }
    }
    assert_eq!(runs, [2, 2, 1]);
}
