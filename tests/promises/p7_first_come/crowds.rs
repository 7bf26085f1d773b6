//! A turn serves all who waited when it began, however many: what a task gets of the lock does not
//! depend on how many others its process has.

use crate::support::{Waiting, World, lock, millis, warm_up};

#[tokio::test]
async fn a_contended_turn_serves_all_who_waited_when_it_began() {
    for crowd in [15, 16, 17, 32, 300] {
        let world = World::new();
        let (one, two) = (world.runtime(1), world.another_line().runtime(2));
        warm_up(&world, &two).await;
        let guard = lock(&two).acquire().await.unwrap();
        let mut waiting = Vec::new();
        for _ in 0..crowd {
            waiting.push(Waiting::queued(&world, &one).await);
        }
        let theirs = Waiting::queued(&world, &two).await;
        // Their own turn is over, which began alone.
        world.pass(millis(10)).await;
        guard.release().await.unwrap();
        for (served, task) in waiting.into_iter().enumerate() {
            assert!(!theirs.is_over(), "the turn of {crowd} ended after {served}");
            task.taken(&world).await.release().await.unwrap();
        }
        theirs.taken(&world).await.release().await.unwrap();
    }
}
