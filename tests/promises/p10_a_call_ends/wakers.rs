//! Wakers are the code of an executor. Dropping one may drop a task, and with it whatever the task
//! has of the very same lock: no lock of the runtime may be held then.

use std::{
    pin::{Pin, pin},
    sync::{Arc, Mutex, mpsc},
    task::{Context, Poll, Wake, Waker},
    thread,
    time::Duration,
};

use leasehold::{Acquire, Guard, LockRuntime, error::AcquireError};
use leasehold_testkit::{CommandKind, Fault, Gate, ManualClock, Rule};

use crate::support::{TimerlessClock, World, lock};

/// How long a thread may take that should be done at once.
const CEILING: Duration = Duration::from_secs(30);

/// The last reference to a task that waits.
struct LastReference(Mutex<Option<Acquire>>);

impl Wake for LastReference {
    fn wake(self: Arc<Self>) {}
}

impl Drop for LastReference {
    fn drop(&mut self) {
        drop(self.0.lock().unwrap().take());
    }
}

/// A world whose timers keep no wakers: the queue of the lock has the only ones.
fn world() -> World {
    World::on_clock(&ManualClock::new(), |manual| Arc::new(TimerlessClock(manual)))
}

fn waker_of(task: Option<Acquire>) -> Waker {
    Waker::from(Arc::new(LastReference(Mutex::new(task))))
}

fn poll(task: &mut Acquire, waker: &Waker) -> Poll<Result<Guard, AcquireError>> {
    Pin::new(task).poll(&mut Context::from_waker(waker))
}

/// A lock that is held, and a task that waits for it: its waker has the last reference to another
/// one.
async fn held_and_waited_for(locks: &LockRuntime) -> (Guard, Acquire) {
    let held = lock(locks).acquire().await.unwrap();
    let mut other = lock(locks).acquire();
    assert!(poll(&mut other, Waker::noop()).is_pending());
    let mut waiting = lock(locks).acquire();
    assert!(poll(&mut waiting, &waker_of(Some(other))).is_pending());
    (held, waiting)
}

/// Runs a scene on a thread of its own, which must end.
fn ends(what: &'static str, scene: impl AsyncFnOnce() + Send + 'static) {
    let (tell, told) = mpsc::channel();
    thread::spawn(move || {
        let tokio = tokio::runtime::Builder::new_current_thread().build().unwrap();
        tokio.block_on(scene());
        let _ = tell.send(());
    });
    assert!(told.recv_timeout(CEILING).is_ok(), "{what}: it hangs");
}

#[test]
fn a_waker_that_is_replaced_is_dropped_outside_of_every_lock() {
    ends("replaced", async || {
        let world = world();
        let locks = world.runtime(1);
        let (held, mut waiting) = held_and_waited_for(&locks).await;
        // The waker before goes, and the task with it.
        assert!(poll(&mut waiting, Waker::noop()).is_pending());
        assert_eq!(locks.footprint().waiting, 1);
        held.release().await.unwrap();
    });
}

#[test]
fn the_waker_of_a_task_that_leaves_is_dropped_outside_of_every_lock() {
    ends("leaves", async || {
        let world = world();
        let locks = world.runtime(1);
        let (held, waiting) = held_and_waited_for(&locks).await;
        drop(waiting);
        assert_eq!(locks.footprint().waiting, 0);
        held.release().await.unwrap();
    });
}

#[test]
fn the_waker_of_a_task_that_takes_its_lease_is_dropped_outside_of_every_lock() {
    ends("takes", async || {
        let world = world();
        let locks = world.runtime(1);
        let gate = Gate::new();
        world.store.inject(Rule::new(Fault::DelayReply(gate.clone())).on(CommandKind::Acquire));
        let mut first = lock(&locks).acquire();
        let mut other = lock(&locks).acquire();
        let bomb = waker_of(None);
        assert!(poll(&mut first, &bomb).is_pending());
        assert!(poll(&mut other, Waker::noop()).is_pending());
        // The queue has one reference to it, this test none.
        let shared = waker_of(Some(other));
        assert!(poll(&mut first, &shared).is_pending());
        drop((bomb, shared));
        gate.open();
        world.settle().await;
        let Poll::Ready(guard) = poll(&mut first, Waker::noop()) else { panic!("granted") };
        let guard = guard.unwrap();
        assert_eq!(locks.footprint().waiting, 0);
        guard.release().await.unwrap();
    });
}

/// Drains as soon as it is woken, in place.
struct DrainsWhenWoken(LockRuntime);

impl Wake for DrainsWhenWoken {
    fn wake(self: Arc<Self>) {
        let drain = pin!(self.0.drain(Duration::ZERO));
        let _ = drain.poll(&mut Context::from_waker(Waker::noop()));
    }
}

#[test]
fn who_is_woken_by_a_drain_may_drain() {
    ends("drains", async || {
        let world = world();
        let locks = world.runtime(1);
        let mut draining = locks.draining();
        let waker = Waker::from(Arc::new(DrainsWhenWoken(locks.clone())));
        assert!(Pin::new(&mut draining).poll(&mut Context::from_waker(&waker)).is_pending());
        assert_eq!(locks.drain(Duration::ZERO).await.held, 0);
    });
}
