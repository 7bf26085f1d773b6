use std::{num::NonZeroU32, sync::Arc, time::Duration};

use leasehold_core::{
    AcquisitionId, Clock, FencePolicy, FenceSettings, Instant, LockName, LockStore, MemoryStore,
    Mode, NamePattern, Replication, RuntimeId, RuntimeLabel, StoreError, StoreErrorKind, Ttl,
    lease::HoldUpdate,
    store::{
        AcquireAnswer, Ask, Command, ForceRelease, ForceReleaseAnswer, Heartbeat, Heartbeats, Hold,
        HoldAnswer, Inspection, Push, Release, ReleaseAnswer, RenewAnswer, Renewal, Renewals,
        Reply, Scan, ScanCursor, Waiter, Withdraw,
    },
};
use leasehold_testkit::{
    CommandKind, Fault, FaultyStore, Gate, ManualClock, Rule,
    contract::PushLog,
    faulty::{CommandFacts, PushFault, PushRule},
};
use tokio::task::yield_now;
use uuid::Uuid;

use crate::words::{acquire, fence, id};

const LIMIT: Duration = Duration::from_secs(1);

/// A store that counts its fences from 1.
fn memory(clock: &ManualClock) -> Arc<dyn LockStore> {
    let fencing = FenceSettings::default().policy(FencePolicy::Counter);
    Arc::new(MemoryStore::new(Arc::new(clock.clone()), fencing))
}

fn faulty() -> (FaultyStore, ManualClock) {
    let clock = ManualClock::new();
    let store = FaultyStore::new(memory(&clock), Arc::new(clock.clone()));
    (store, clock)
}

/// Sends an acquire from another task.
fn spawn_acquire(
    store: &FaultyStore,
    number: u64,
    deadline: Instant,
) -> tokio::task::JoinHandle<Result<AcquireAnswer, StoreError>> {
    let store = store.clone();
    tokio::spawn(async move { acquire(&store, number, deadline).await })
}

/// What an acquire under a fault comes to, once it has been silent until its deadline.
async fn silent(fault: Fault) -> FaultyStore {
    let (store, clock) = faulty();
    store.inject(Rule::new(fault));
    let sent = spawn_acquire(&store, 1, clock.now() + LIMIT);
    clock.travel(Duration::from_nanos(999_999_999)).await;
    assert!(!sent.is_finished());
    clock.travel(Duration::from_nanos(1)).await;
    let error = sent.await.unwrap().unwrap_err();
    assert_eq!(error.kind(), StoreErrorKind::Indeterminate);
    assert_eq!(error.lock().unwrap().as_str(), "a");
    store
}

#[tokio::test]
async fn without_rules_every_command_passes() {
    let (store, clock) = faulty();
    let deadline = clock.now() + LIMIT;
    let (name, id, fence, ttl) = (LockName::new("a").unwrap(), id(1), fence(1), Ttl::default());
    let named = || name.clone();
    assert!(matches!(acquire(&store, 1, deadline).await, Ok(AcquireAnswer::Granted(_))));
    let update = HoldUpdate { count: NonZeroU32::MIN, number: 1 };
    let hold = Hold { name: named(), id, fence, update, ttl, acks: Replication::NONE };
    assert!(matches!(store.ask(hold, deadline).await, Ok(HoldAnswer::Held { .. })));
    let batch = vec![Renewal { name: named(), id, fence, ttl, acks: Replication::NONE }; 2];
    let renewed = store.ask(Renewals { batch }, deadline).await.unwrap();
    let [Ok(one), Ok(other)] = &renewed[..] else { panic!("{renewed:?}") };
    assert!(matches!((one, other), (RenewAnswer::Renewed { .. }, RenewAnswer::Renewed { .. })));
    let heartbeat = Heartbeat { number: 1, claim_window: LIMIT };
    let (mode, watermark, keeps) = (Mode::Write, None, true);
    let batch = vec![Waiter { name: named(), id, mode, ttl, watermark, keeps, heartbeat }];
    let heartbeats = Heartbeats { batch, label: RuntimeLabel::new("stub") };
    let beaten = store.ask(heartbeats, deadline).await.unwrap();
    assert!(matches!(beaten[..], [Ok(AcquireAnswer::Granted(_))]));
    let looked = store.inspect(&name, deadline).await;
    assert!(matches!(looked, Ok(Inspection::Held(_))), "{looked:?}");
    let (keep, next) = (None, None);
    let release = Release { name: named(), id, fence, keep, next };
    assert_eq!(store.ask(release, deadline).await, Ok(ReleaseAnswer::Released));
    let forced = store.ask(ForceRelease { name: named(), id, fence }, deadline).await;
    assert_eq!(forced, Ok(ForceReleaseAnswer::Changed));
    assert!(!store.ask(Withdraw { name: named(), id }, deadline).await.unwrap().ended_grant);
    let (pattern, cursor) = (NamePattern::default(), ScanCursor::default());
    let page = store.ask(Scan { pattern, cursor }, deadline).await.unwrap();
    assert!(page.next.is_none(), "{page:?}");
    for kind in CommandKind::ALL {
        assert_eq!((store.sent(kind), store.executed(kind)), (1, 1), "{kind:?}");
    }
    let log = store.log();
    let is_ours =
        |command: &Command| command.kind() == CommandKind::Scan || *command.names()[0] == name;
    assert!(log.iter().all(|done| is_ours(&done.command) && !done.late));
    assert_eq!(log[2].command.ids(), [id, id]);
    store.clear_log();
    assert!(store.log().is_empty());
}

#[tokio::test]
async fn a_failure_is_told_at_once_and_changes_nothing() {
    let (store, clock) = faulty();
    let error = StoreError::new(StoreErrorKind::Definite, "refused", "try again");
    store.inject(Rule::new(Fault::Fail(error.clone())).on(CommandKind::Acquire));
    assert_eq!(acquire(&store, 1, clock.now()).await, Err(error));
    assert_eq!((store.sent(CommandKind::Acquire), store.executed(CommandKind::Acquire)), (1, 0));
    assert!(acquire(&store, 1, clock.now()).await.is_ok());
}

#[tokio::test]
async fn a_lost_request_is_silent_and_not_executed() {
    let store = silent(Fault::LoseRequest).await;
    assert_eq!(store.executed(CommandKind::Acquire), 0);
    assert!(store.deliver_late().await.is_empty());
}

#[tokio::test]
async fn a_lost_reply_is_silent_and_executed() {
    let store = silent(Fault::LoseReply).await;
    assert_eq!(store.executed(CommandKind::Acquire), 1);
}

#[tokio::test]
async fn a_late_request_is_executed_when_the_test_says_so() {
    let store = silent(Fault::LateRequest).await;
    assert_eq!((store.executed(CommandKind::Acquire), store.late()), (0, 1));
    let deliveries = store.deliver_late().await;
    assert!(matches!(deliveries[0].outcome, Ok(Reply::Acquire(AcquireAnswer::Granted(_)))));
    assert_eq!((store.executed(CommandKind::Acquire), store.late()), (1, 0));
    assert!(store.log()[0].late);
}

#[tokio::test]
async fn a_duplicate_is_answered_now_and_executed_again_later() {
    let (store, clock) = faulty();
    store.inject(Rule::new(Fault::Duplicate));
    let deadline = clock.now() + LIMIT;
    assert!(matches!(acquire(&store, 1, deadline).await, Ok(AcquireAnswer::Granted(_))));
    clock.advance(10 * LIMIT);
    assert_eq!(store.deliver_late().await.len(), 1);
    assert_eq!(store.executed(CommandKind::Acquire), 2);
}

#[tokio::test]
async fn a_gate_holds_requests_and_lets_them_go_in_order() {
    let (store, clock) = faulty();
    let gate = Gate::new();
    store.inject(Rule::new(Fault::Delay(gate.clone())).always());
    let deadline = clock.now() + LIMIT;
    let first = spawn_acquire(&store, 1, deadline);
    gate.wait_for_arrivals(1).await;
    let second = spawn_acquire(&store, 2, deadline);
    gate.wait_for_arrivals(2).await;
    assert_eq!((gate.arrived(), store.executed(CommandKind::Acquire)), (2, 0));
    gate.let_pass(1);
    assert!(matches!(first.await.unwrap(), Ok(AcquireAnswer::Granted(_))));
    assert!(!second.is_finished());
    gate.open();
    assert!(matches!(second.await.unwrap(), Ok(AcquireAnswer::Busy { .. })));
    assert_eq!(store.late(), 0);
}

#[tokio::test]
async fn a_request_whose_sender_gave_up_cannot_be_called_back() {
    let gate = Gate::new();
    let store = silent(Fault::Delay(gate.clone())).await;
    assert_eq!(store.late(), 1);

    let (store, clock) = faulty();
    store.inject(Rule::new(Fault::Delay(gate.clone())));
    let sender = spawn_acquire(&store, 1, clock.now() + LIMIT);
    gate.wait_for_arrivals(2).await;
    sender.abort();
    assert!(sender.await.unwrap_err().is_cancelled());
    assert_eq!((store.late(), store.executed(CommandKind::Acquire)), (1, 0));
    assert_eq!(store.deliver_late().await.len(), 1);
    assert_eq!(store.executed(CommandKind::Acquire), 1);
}

#[tokio::test]
async fn a_reply_waits_at_its_gate() {
    let store = silent(Fault::DelayReply(Gate::new())).await;
    assert_eq!((store.executed(CommandKind::Acquire), store.late()), (1, 0));

    let (store, clock) = faulty();
    let gate = Gate::new();
    store.inject(Rule::new(Fault::DelayReply(gate.clone())));
    let sender = spawn_acquire(&store, 1, clock.now() + LIMIT);
    gate.wait_for_arrivals(1).await;
    assert_eq!(store.executed(CommandKind::Acquire), 1);
    gate.open();
    assert!(sender.await.unwrap().is_ok());
}

#[tokio::test]
async fn a_hanging_command_outlives_its_deadline() {
    for executed in [false, true] {
        let (store, clock) = faulty();
        store.inject(Rule::new(Fault::Hang { executed }));
        let sender = spawn_acquire(&store, 1, clock.now() + LIMIT);
        yield_now().await;
        clock.travel(100 * LIMIT).await;
        assert!(!sender.is_finished());
        assert_eq!(store.executed(CommandKind::Acquire), usize::from(executed));
        sender.abort();
    }
}

#[tokio::test]
async fn rules_choose_by_kind_name_and_number() {
    let (store, clock) = faulty();
    let error = StoreError::new(StoreErrorKind::Definite, "refused", "try again");
    let fail = || Rule::new(Fault::Fail(error.clone()));
    store.inject(fail().on(CommandKind::Release));
    store.inject(fail().lock(&LockName::new("b").unwrap()).always());
    store.inject(fail().on(CommandKind::Acquire).nth(2).times(2));
    let mut failed = Vec::new();
    for _ in 0..5 {
        failed.push(acquire(&store, 1, clock.now()).await.is_err());
    }
    assert_eq!(failed, [false, true, true, false, false]);
    let b = LockName::new("b").unwrap();
    assert!(store.inspect(&b, clock.now()).await.is_err());
    store.heal();
    assert!(store.inspect(&b, clock.now()).await.is_ok());
}

/// A listener's store, what it heard, and the store behind the faults.
struct Listening {
    store: FaultyStore,
    behind: Arc<dyn LockStore>,
    pushes: Arc<PushLog>,
}

async fn listening() -> Listening {
    let clock = ManualClock::new();
    let behind = memory(&clock);
    let store = FaultyStore::new(Arc::clone(&behind), Arc::new(clock));
    let pushes = PushLog::listen(&store, id(1).runtime()).await;
    Listening { store, behind, pushes }
}

/// Lets a store push about an acquisition with this number: its lease is ended by force.
async fn push(store: &dyn LockStore, number: u64) {
    let deadline = Instant::at(LIMIT);
    let Ok(AcquireAnswer::Granted(granted)) = acquire(store, number, deadline).await else {
        panic!("a free lock")
    };
    let (name, id, fence) = (LockName::new("a").unwrap(), id(number), granted.first);
    store.ask(ForceRelease { name, id, fence }, deadline).await.unwrap();
}

impl Listening {
    async fn push(&self, number: u64) {
        push(&*self.behind, number).await;
    }

    /// The numbers of the acquisitions that were heard of since the last look.
    fn heard(&self) -> Vec<u64> {
        let number = |push: Push| match push {
            Push::ForceReleased { id, .. } => id.number(),
            other => panic!("{other:?}"),
        };
        self.pushes.drain().into_iter().map(number).collect()
    }
}

#[tokio::test]
async fn without_rules_every_push_passes() {
    let listening = listening().await;
    listening.push(1).await;
    listening.push(2).await;
    assert_eq!(listening.heard(), [1, 2]);
    assert_eq!((listening.store.pushed(), listening.store.held_pushes()), (2, 0));
    listening.store.reconnect();
    assert_eq!(listening.pushes.drain_all(), [Push::Listening]);
}

#[tokio::test]
async fn pushes_are_lost_delayed_and_doubled() {
    let listening = listening().await;
    for (number, fault) in (1..).zip([PushFault::Lose, PushFault::Delay, PushFault::Duplicate]) {
        listening.store.inject_push(PushRule::new(fault).nth(number));
    }
    for number in 1..5 {
        listening.push(number).await;
    }
    assert_eq!(listening.heard(), [3, 4]);
    assert_eq!((listening.store.pushed(), listening.store.held_pushes()), (4, 2));
    assert_eq!(listening.store.deliver_pushes(), 2);
    assert_eq!(listening.heard(), [2, 3]);
    assert_eq!(listening.store.deliver_pushes(), 0);
}

#[tokio::test]
async fn push_rules_choose_by_runtime_and_name() {
    let listening = listening().await;
    let stranger = AcquisitionId::new(RuntimeId::new(Uuid::from_u128(9)), 1).runtime();
    let other = LockName::new("b").unwrap();
    listening.store.inject_push(PushRule::new(PushFault::Lose).to(stranger).always());
    listening.store.inject_push(PushRule::new(PushFault::Lose).lock(&other).always());
    listening.push(1).await;
    assert_eq!(listening.heard(), [1]);
    let a = LockName::new("a").unwrap();
    listening.store.inject_push(PushRule::new(PushFault::Lose).lock(&a).times(2));
    for number in 2..5 {
        listening.push(number).await;
    }
    assert_eq!(listening.heard(), [4]);
    listening.store.inject_push(PushRule::new(PushFault::Lose).always());
    listening.store.heal();
    listening.push(5).await;
    assert_eq!(listening.heard(), [5]);
}

#[tokio::test]
async fn a_dropped_listener_hears_nothing() {
    let Listening { store, behind, pushes } = listening().await;
    drop(pushes);
    push(&*behind, 1).await;
    store.reconnect();
    let pushes = PushLog::listen(&store, id(1).runtime()).await;
    assert!(pushes.drain().is_empty());
}

#[tokio::test]
async fn names_keep_their_part_behind_the_faults() {
    let (store, clock) = faulty();
    let front = FaultyStore::new(Arc::new(store.clone()), Arc::new(clock));
    let name = LockName::new("abc").unwrap();
    assert_eq!(front.shard(&name), 0);
    store.divide(|name| name.as_str().len());
    assert_eq!((store.shard(&name), front.shard(&name)), (3, 3));
}
