//! P1, one believer: at most one holder believes that it holds a name, because belief ends at
//! `t_send + ttl − max(2 ms, 1 %)`, counted from before the request was sent.

mod rivals;

use std::{
    pin::{Pin, pin},
    task::Poll,
    time::Duration,
};

use leasehold::{
    Guard, LeaseState, LockRuntime, LockRuntimeBuilder, LossReason, error::AcquireError,
    store::LeaseRecord,
};
use leasehold_testkit::{CommandKind, Fault, Gate, Rule, Wrong};

use crate::support::{World, just_before, millis, nanos, poll_once, secs};

const NAME: &str = World::NAME;

type Start = fn(&World, LockRuntimeBuilder) -> LockRuntime;

/// A lease of 10 s whose commands of one kind wait at a gate for 1.5 s.
struct Delayed {
    world: World,
    gate: Gate,
}

impl Delayed {
    fn new(kind: CommandKind, fault: impl FnOnce(Gate) -> Fault) -> Self {
        let (world, gate) = (World::new(), Gate::new());
        world.store.inject(Rule::new(fault(gate.clone())).on(kind));
        Self { world, gate }
    }

    async fn open_late(&self) {
        self.gate.wait_for_arrivals(1).await;
        self.world.pass(millis(1_500)).await;
        self.gate.open();
    }
}

#[tokio::test]
async fn belief_counts_from_before_the_send_when_the_reply_is_slow() {
    let scene = Delayed::new(CommandKind::Acquire, Fault::DelayReply);
    let (world, locks) = (&scene.world, scene.world.runtime(1));
    let lock = locks.lock(NAME).unwrap();
    let acquire = lock.acquire().wait(Duration::ZERO).renew(false);
    let (guard, ()) = tokio::join!(acquire, scene.open_late());
    let guard = guard.unwrap();
    // 10 s less 100 ms less the 1.5 s that the answer took.
    assert_eq!(guard.remaining(), millis(8_400));
    assert_eq!(world.holder(NAME).await.unwrap().remaining, millis(8_500));
    world.clock().advance(just_before(millis(8_400)));
    assert!(guard.is_held());
    world.clock().advance(nanos(1));
    assert_eq!(guard.lease().state(), LeaseState::Lost(LossReason::Expired));
    assert_eq!(world.holder(NAME).await.unwrap().remaining, millis(100));
}

#[tokio::test]
async fn belief_counts_from_before_the_send_when_the_request_is_slow() {
    let scene = Delayed::new(CommandKind::Acquire, Fault::Delay);
    let (world, locks) = (&scene.world, scene.world.runtime(1));
    let lock = locks.lock(NAME).unwrap();
    let acquire = lock.acquire().wait(Duration::ZERO).renew(false);
    let (guard, ()) = tokio::join!(acquire, scene.open_late());
    let guard = guard.unwrap();
    assert_eq!(guard.remaining(), millis(8_400));
    assert_eq!(world.holder(NAME).await.unwrap().remaining, secs(10));
}

/// A wait asks again meanwhile: whatever answer it believes, the server's lease outlives that.
#[tokio::test]
async fn belief_ends_before_the_lease_when_a_slow_command_is_followed_by_a_heartbeat() {
    for fault in [Fault::Delay, Fault::DelayReply] {
        let scene = Delayed::new(CommandKind::Acquire, fault);
        let (world, locks) = (&scene.world, scene.world.runtime(1));
        let lock = locks.lock(NAME).unwrap();
        let acquire = Box::pin(lock.acquire().renew(false));
        let (guard, ()) = tokio::join!(acquire, scene.open_late());
        let (believed, left) = (guard.unwrap(), world.holder(NAME).await.unwrap().remaining);
        let believed = believed.remaining();
        assert!(believed >= millis(8_400) && believed < left, "{believed:?} of {left:?}");
    }
}

#[tokio::test]
async fn a_renewal_and_a_reentry_extend_from_before_their_send() {
    for kind in [CommandKind::Renew, CommandKind::Hold] {
        let scene = Delayed::new(kind, Fault::DelayReply);
        let (world, locks) = (&scene.world, scene.world.runtime(1));
        let renews = kind == CommandKind::Renew;
        let guard = locks.lock(NAME).unwrap().acquire().renew(renews).await.unwrap();
        if renews {
            while scene.gate.arrived() == 0 {
                world.pass(millis(1)).await;
            }
            scene.open_late().await;
            world.settle().await;
            // It was executed at once, so the server's lease ends 10 s after the send.
            let end = world.holder(NAME).await.unwrap().remaining;
            assert_eq!((guard.remaining() + millis(100)).as_millis(), end.as_millis());
            assert!(end <= millis(8_500) && end > millis(8_490), "{end:?}");
        } else {
            world.pass(secs(1)).await;
            let (inner, ()) = tokio::join!(guard.reenter(), scene.open_late());
            assert_eq!(inner.unwrap().remaining(), millis(8_400));
            assert_eq!(world.holder(NAME).await.unwrap().remaining, millis(8_500));
        }
    }
}

#[tokio::test]
async fn the_margin_is_one_percent_and_never_below_two_milliseconds() {
    let world = World::new();
    let locks = world.runtime(1);
    let cases: [(Duration, Duration); 4] = [
        (millis(100), millis(2)),
        (millis(200), millis(2)),
        (secs(30), millis(300)),
        (secs(24 * 3600), secs(864)),
    ];
    for (ttl, margin) in cases {
        let guard = locks.lock(NAME).unwrap().acquire().ttl(ttl).await.unwrap();
        assert_eq!(guard.remaining(), ttl.saturating_sub(margin));
        guard.release().await.unwrap();
    }
}

/// An answer that is there in time, and that nobody looks at until belief would be over.
struct Late {
    scene: Delayed,
    acquire: Pin<Box<dyn Future<Output = Result<Guard, AcquireError>> + Send>>,
    granted: LeaseRecord,
}

impl Late {
    /// Polled for the first time; the answer has come since.
    async fn new(start: Start) -> Self {
        let scene = Delayed::new(CommandKind::Acquire, Fault::DelayReply);
        let locks = start(&scene.world, scene.world.builder(1));
        let lock = locks.lock(NAME).unwrap();
        let mut acquire = Box::pin(lock.acquire().ttl(secs(1)).renew(false));
        assert!(poll_once(acquire.as_mut()).is_pending());
        let granted = scene.world.holder(NAME).await.unwrap();
        scene.gate.open();
        Self { scene, acquire, granted }
    }

    fn poll(&mut self) -> Poll<Guard> {
        poll_once(self.acquire.as_mut()).map(Result::unwrap)
    }
}

/// Just when belief would be over, the server's lease has 10 ms left: one renewal has to say that
/// it is still there, and belief counts from that.
#[tokio::test]
async fn a_late_grant_is_not_believed_before_it_is_confirmed() {
    let mut late = Late::new(World::start).await;
    let world = late.scene.world.clone();
    world.clock().advance(millis(990));
    assert!(late.poll().is_pending());
    assert_eq!(world.store.sent(CommandKind::Renew), 0);
    world.settle().await;
    world.clock().advance(millis(100));
    let Poll::Ready(guard) = late.poll() else { panic!("it is confirmed") };
    assert_eq!((guard.id(), guard.fence()), (late.granted.id, late.granted.fence));
    assert_eq!(world.store.sent(CommandKind::Renew), 1);
    assert_eq!(guard.remaining(), millis(890));
    assert_eq!(world.holder(NAME).await.unwrap().remaining, millis(900));
}

/// Meanwhile somebody else has the lock.
#[tokio::test]
async fn a_late_grant_that_is_gone_is_never_believed() {
    let mut late = Late::new(World::start).await;
    let world = late.scene.world.clone();
    world.clock().advance(secs(1));
    let theirs = world.another_line().runtime(2).lock(NAME).unwrap().acquire().await.unwrap();
    for _ in 0..40 {
        assert!(late.poll().is_pending() && theirs.is_held());
        world.pass(millis(100)).await;
    }
    let theirs_was = theirs.fence();
    theirs.release().await.unwrap();
    world.settle().await;
    let Poll::Ready(guard) = late.poll() else { panic!("the lock is free") };
    assert!(guard.fence() > theirs_was && theirs_was > late.granted.fence && guard.is_held());
}

/// The control: counted from its arrival, the late grant makes a believer beside the other.
#[tokio::test]
async fn control_a_late_grant_counted_from_its_arrival_makes_two_believers() {
    let wrong: Start = |world, builder| world.start_wrong(builder, Wrong::CountsAnswersFromArrival);
    let mut late = Late::new(wrong).await;
    let world = late.scene.world.clone();
    world.clock().advance(secs(1));
    let theirs = world.another_line().runtime(2).lock(NAME).unwrap().acquire().await.unwrap();
    let Poll::Ready(guard) = late.poll() else { panic!("it believes what it hears") };
    assert!(guard.is_held() && theirs.is_held());
}

/// The other side of the edge: a nanosecond earlier it is believed as it is.
#[tokio::test]
async fn a_grant_that_is_just_in_time_is_believed() {
    let scene = Delayed::new(CommandKind::Acquire, Fault::DelayReply);
    let (world, locks) = (&scene.world, scene.world.runtime(1));
    let lock = locks.lock(NAME).unwrap();
    let mut acquire = pin!(lock.acquire().ttl(secs(1)).renew(false));
    assert!(poll_once(acquire.as_mut()).is_pending());
    scene.gate.open();
    world.clock().advance(just_before(millis(990)));
    let Poll::Ready(Ok(guard)) = poll_once(acquire.as_mut()) else { panic!("still believed") };
    assert_eq!(guard.remaining(), nanos(1));
    world.clock().advance(nanos(1));
    assert!(!guard.is_held());
}

/// Some hundred short runs of two processes with delays, losses, copies and pauses.
#[test]
fn two_processes_never_believe_at_once() {
    let (mut leases, mut lost, mut overlaps) = (0, 0, 0);
    for seed in 0..300 {
        let run = rivals::run(seed);
        let summary = run.believed.check_strictly();
        let summary = summary.unwrap_or_else(|violations| panic!("seed {seed}: {violations:?}"));
        leases += summary.leases;
        lost += summary.lost;
        // The control: the same run, where validity is counted from the reply.
        overlaps += run.believed_from_reply.check().unwrap().overlaps.len();
    }
    assert!(leases > 1_500 && lost > 100, "{leases} leases, {lost} lost: too quiet a run");
    assert!(overlaps > 10, "{overlaps} overlaps: counting from the reply should show more");
}

#[test]
fn a_run_replays_from_its_seed() {
    let (one, two) = (rivals::run(7), rivals::run(7));
    assert_eq!(one.believed.events(), two.believed.events());
}
