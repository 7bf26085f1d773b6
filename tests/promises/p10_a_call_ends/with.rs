use std::{
    io,
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_testkit::{CommandKind, Fault, Rule};

use crate::support::{World, config, definite, just_before, lock, millis, nanos, secs};

const NAME: &str = World::NAME;

/// The command timeout unless another is chosen.
const TIMEOUT: Duration = Duration::from_secs(2);

/// The server goes away inside of the body, for a second of the ten that the lease has.
#[tokio::test]
async fn finished_work_is_a_success_within_one_command_timeout() {
    for fault in [Fault::LoseRequest, Fault::LoseReply, Fault::Fail(definite())] {
        let world = World::new();
        let lock = lock(&world.runtime(1));
        let (line, faulty) = (world.clone(), fault.clone());
        let done = Arc::new(AtomicBool::new(false));
        let seen = Arc::clone(&done);
        let work = tokio::spawn(async move {
            lock.with(async |_| {
                line.store.inject(Rule::new(faulty).always());
                line.pass_quietly(secs(1)).await;
                seen.store(true, Ordering::Relaxed);
                Ok::<_, io::Error>("receipt 7")
            })
            .await
        });
        world.pass(secs(1)).await;
        assert!(done.load(Ordering::Relaxed));
        world.pass(just_before(TIMEOUT)).await;
        assert!(!work.is_finished(), "{fault:?}: its release has its time");
        world.pass(nanos(1)).await;
        assert!(work.is_finished(), "{fault:?}: no longer than that");
        assert_eq!(work.await.unwrap().unwrap(), "receipt 7", "{fault:?}");
        // The runtime goes on, and the lock is free long before the ttl.
        world.store.heal();
        world.pass(TIMEOUT + millis(250)).await;
        assert!(world.holder(NAME).await.is_none(), "{fault:?}");
    }
}

/// What the server refuses for good does not undo the work either.
#[tokio::test]
async fn a_refused_release_is_no_failure_of_the_work() {
    let world = World::new();
    let lock = lock(&world.runtime(1));
    world.store.inject(Rule::new(Fault::Fail(config())).on(CommandKind::Release).always());
    let told = lock.with(async |_| Ok::<_, io::Error>(7)).await;
    assert_eq!(told.unwrap(), 7);
}

/// The server knew better, and nobody had told: the work was finished under belief.
#[tokio::test]
async fn a_lease_that_was_gone_unheard_is_no_failure_of_the_work() {
    let world = World::new();
    let lock = lock(&world.runtime(1));
    let line = world.clone();
    let told = lock
        .with(async |_| {
            line.memory().clear();
            Ok::<_, io::Error>(7)
        })
        .await;
    assert_eq!(told.unwrap(), 7);
}
