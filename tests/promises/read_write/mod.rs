//! Readers share a lock, and take turns with writers.

mod rivals;

use leasehold::{
    ForceReleased, Guard, LeaseEnd, LockRuntime, LossReason, ReadGuard, Released, RwLock,
    error::AcquireError,
};
use leasehold_testkit::CommandKind;
use tokio::{join, spawn, task::JoinHandle};

use crate::support::{World, on_every_store, secs};

const NAME: &str = World::NAME;

fn lock(locks: &LockRuntime) -> RwLock {
    locks.rw_lock(NAME).unwrap()
}

async fn reads(locks: &LockRuntime) -> ReadGuard {
    lock(locks).read().await.unwrap()
}

on_every_store! {
    /// Readers of all processes have one fence, and keep writers out.
    async fn readers_share_the_lock(world: World) {
        let (one, other) = (world.runtime(1), world.runtime(2));
        let (first, second, third) = (reads(&one).await, reads(&one).await, reads(&other).await);
        assert_eq!((first.fence(), first.fence()), (second.fence(), third.fence()));
        assert_eq!(world.holder(NAME).await.unwrap().readers.len(), 2, "one for each process");
        assert!(lock(&other).write().try_acquire().await.unwrap().is_none());
        assert!(one.lock(NAME).unwrap().acquire().try_acquire().await.unwrap().is_none());
        for guard in [first, third] {
            guard.release().await.unwrap();
        }
        assert!(lock(&one).write().try_acquire().await.unwrap().is_none(), "one reads on");
        let fence = second.fence();
        second.release().await.unwrap();
        let writer = lock(&other).write().await.unwrap();
        assert!(writer.fence() > fence);
        assert!(lock(&one).read().try_acquire().await.unwrap().is_none());
        writer.release().await.unwrap();
        assert!(reads(&one).await.fence() > fence);
    }

    /// A writer that waits lets nobody in before it, of no process; then come those who waited to read.
    async fn a_writer_waits_for_those_who_read_and_no_longer(world: World) {
        let (one, other) = (world.runtime(1), world.runtime(2));
        let first = reads(&one).await;
        let writing = writes(&other);
        world.until("its process has heard of the writer", async || {
            lock(&one).read().try_acquire().await.unwrap().is_none()
        }).await;
        assert!(lock(&other).read().try_acquire().await.unwrap().is_none());
        let fence = first.fence();
        let read_later = lock(&one).read();
        let (released, writer, later) = join!(
            first.release(),
            async {
                let writer = writing.await.unwrap();
                let fence = writer.fence();
                writer.release().await.unwrap();
                fence
            },
            read_later,
        );
        released.unwrap();
        assert!(writer > fence && later.unwrap().fence() > writer);
    }

    /// An owner that reads may read again at once, also while a writer waits; to write it is refused.
    async fn an_owner_reads_again_and_never_waits_for_itself(world: World) {
        let (one, other) = (world.runtime(1), world.runtime(2));
        let owner = one.owner();
        let first = lock(&one).read().owner(&owner).await.unwrap();
        let writing = writes(&other);
        world.until("its process has heard of the writer", async || {
            lock(&one).read().try_acquire().await.unwrap().is_none()
        }).await;
        let second = lock(&one).read().owner(&owner).await.unwrap();
        assert_eq!(first.fence(), second.fence());
        let error = lock(&one).write().owner(&owner).await.unwrap_err();
        assert!(matches!(&error, AcquireError::WouldDeadlock { lock } if lock.as_str() == NAME));
        drop((first, second));
        writing.await.unwrap().release().await.unwrap();
        // Who writes may read.
        let writer = lock(&one).write().owner(&owner).await.unwrap();
        let reader = lock(&one).read().owner(&owner).await.unwrap();
        assert_eq!(reader.fence(), writer.fence());
        let again = lock(&one).write().owner(&owner).await.unwrap();
        assert_eq!(again.release().await.unwrap(), Released::StillHeld(2.try_into().unwrap()));
        writer.release().await.unwrap();
        assert!(lock(&other).write().try_acquire().await.unwrap().is_none(), "it reads on");
        reader.release().await.unwrap();
        assert!(lock(&other).write().try_acquire().await.unwrap().is_some());
    }

    /// All readers of a process are told when an operator ends their lease.
    async fn a_loss_is_told_to_every_reader(world: World) {
        let locks = world.runtime(1);
        let guards = [reads(&locks).await, reads(&locks).await];
        let ended = locks.force_release(NAME).await.unwrap();
        assert!(matches!(ended, ForceReleased::Ended { .. }), "{ended:?}");
        for guard in &guards {
            assert_eq!(guard.lost().await, LeaseEnd::Lost(LossReason::ForceReleased));
            assert!(!guard.is_held());
        }
        let anew = reads(&locks).await;
        assert!(anew.fence() > guards[0].fence());
    }

    /// A body that reads is stopped by the loss of its lease.
    async fn a_body_reads(world: World) {
        let locks = world.runtime(1);
        let read = lock(&locks).read().with_ok(async |lease| lease.fence()).await.unwrap();
        assert!(reads(&locks).await.fence() >= read);
    }
}

/// A task that acquires to write.
fn writes(locks: &LockRuntime) -> JoinHandle<Guard> {
    let lock = lock(locks);
    spawn(async move { lock.write().await.unwrap() })
}

/// With `keep_idle`, reads cost no command until a writer comes.
#[tokio::test]
async fn a_kept_lock_is_read_without_commands() {
    let world = World::new();
    let (one, other) = (world.runtime(1), world.runtime(2));
    let kept = lock(&one).keep_idle(secs(3));
    for _ in 0..2 {
        kept.read().await.unwrap().release().await.unwrap();
    }
    let before = world.store.sent(CommandKind::Acquire);
    for _ in 0..100 {
        kept.read().await.unwrap().release().await.unwrap();
    }
    assert_eq!(world.store.sent(CommandKind::Acquire), before);
    let writer = lock(&other).write().await.unwrap();
    assert!(kept.read().try_acquire().await.unwrap().is_none());
    writer.release().await.unwrap();
    kept.read().await.unwrap().release().await.unwrap();
}
