use std::{
    future::ready,
    sync::{Arc, Weak},
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, Clock, Entropy, Fence, Instant, LockName, LockStore, MemoryStore, Mode,
    RuntimeId, RuntimeLabel, SystemClock, SystemEntropy,
    lease::{LeaseEnd, LossReason},
    store::{
        AcquireAnswer, Command, Granted, Inspection, LeaseRecord, Listener, Place, Push,
        ReleaseAnswer, Reply, StoreFuture,
    },
};
use tracing::{Event, Level, Metadata, Subscriber, span};

use crate::{
    Engine, EngineParts, Executor, Guard, LeaseLost, ReentrantLock, ReleaseError, Timing,
    queue::{Effects, TurnId},
    seam::Rules,
};

fn store() -> Arc<dyn LockStore> {
    Arc::new(MemoryStore::new(Arc::new(SystemClock), leasehold_core::FenceSettings::default()))
}

fn engine_on(store: &Arc<dyn LockStore>) -> (Arc<Engine>, ReentrantLock) {
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    let engine = Engine::start(EngineParts {
        store: Arc::clone(store),
        clock: Arc::new(SystemClock),
        runtime_id: entropy.runtime_id(),
        entropy,
        executor: Executor::current().expect("a test of tokio"),
        label: RuntimeLabel::new("a test"),
        timing: Timing { wait: Duration::from_secs(5), ..Timing::default() },
        rules: Rules::default(),
    });
    let name = LockName::new("orders/42").expect("a name");
    let lock = ReentrantLock::new(Arc::clone(&engine), name);
    (engine, lock)
}

async fn scene() -> (Arc<Engine>, Guard) {
    let (engine, lock) = engine_on(&store());
    (engine, lock.acquire().await.expect("a free lock"))
}

/// A force-release has taken the turn from the state of the name, and its lease is not marked as lost yet.
fn taken_away(engine: &Engine, guard: &Guard) -> Effects {
    let grant = Arc::clone(guard.lease().0.turn());
    let taken = engine.with(guard.name(), Mode::Write, |entry, env| {
        entry.state.on_force_released(env, TurnId::of(&grant));
        std::mem::take(&mut env.effects)
    });
    let effects = taken.expect("the name is known");
    assert_eq!(effects.lost, Some(LossReason::ForceReleased));
    assert!(guard.is_held(), "it is not marked yet");
    effects
}

#[tokio::test]
async fn a_release_between_a_force_release_and_its_mark_says_lost() {
    let (engine, guard) = scene().await;
    let (effects, lost) = (taken_away(&engine, &guard), guard.lost());
    let told = guard.release().await;
    assert!(
        matches!(
            told,
            Err(ReleaseError::Lost(LeaseLost { reason: LossReason::ForceReleased, .. }))
        ),
        "{told:?}"
    );
    assert_eq!(lost.await, LeaseEnd::Lost(LossReason::ForceReleased));
    drop(effects);
}

#[tokio::test]
async fn a_drop_between_a_force_release_and_its_mark_is_a_loss() {
    let (engine, guard) = scene().await;
    let (effects, lost) = (taken_away(&engine, &guard), guard.lost());
    drop(guard);
    assert_eq!(lost.await, LeaseEnd::Lost(LossReason::ForceReleased));
    drop(effects);
}

/// The lease and the waiters of a lock, with the words of their ids.
async fn look(engine: &Engine, lock: &ReentrantLock) -> LeaseRecord {
    match engine.inspect(lock.name()).await.expect("an answer") {
        Inspection::Held(record) => record,
        free @ Inspection::Free { .. } => panic!("nobody holds it: {free:?}"),
    }
}

fn granted(name: &LockName, id: AcquisitionId, heartbeat: u64) -> Push {
    let fence = Fence::try_from(Fence::MAX).expect("the greatest one");
    let remaining = Duration::from_secs(60);
    let (contended, regressed) = (false, false);
    let granted = Granted { first: fence, last: fence, remaining, contended, regressed };
    Push::Granted { name: name.clone(), id, granted, heartbeat }
}

fn without_word(id: AcquisitionId) -> AcquisitionId {
    AcquisitionId::new(id.runtime(), id.number())
}

#[tokio::test]
async fn a_message_without_the_word_of_its_acquisition_changes_nothing() {
    let store = store();
    let ((holder, held), (waiter, waits)) = (engine_on(&store), engine_on(&store));
    let guard = held.acquire().await.expect("a free lock");
    let waiting = tokio::spawn(waits.acquire());
    let record = loop {
        tokio::task::yield_now().await;
        let record = look(&holder, &held).await;
        if !record.waiters.is_empty() {
            break record;
        }
    };
    let (turn, place) = (record.id, record.waiters[0].id);
    assert!(turn.word().is_some() && place.word().is_some());
    let (before, other) = (waiter.footprint(), LockName::new("other").expect("a name"));
    for heartbeat in 0..10 {
        waiter.on_push(granted(held.name(), without_word(place), heartbeat));
        // The word of one lock proves nothing for another, and that of one runtime nothing to another.
        waiter.on_push(granted(&other, place, heartbeat));
        waiter.on_push(granted(held.name(), turn, heartbeat));
    }
    let forced = |id| Push::ForceReleased { name: held.name().clone(), id, fence: record.fence };
    holder.on_push(forced(without_word(turn)));
    tokio::task::yield_now().await;
    assert!(!waiting.is_finished() && guard.is_held());
    assert_eq!(waiter.footprint(), before);

    holder.on_push(forced(turn));
    assert!(!guard.is_held(), "a message with the word is believed");
    waiting.abort();
}

#[tokio::test]
async fn a_grant_that_nobody_waits_for_moves_no_watermark() {
    let (engine, guard) = scene().await;
    let lock = ReentrantLock::new(Arc::clone(&engine), guard.name().clone());
    let turn = look(&engine, &lock).await.id;
    let mark = || engine.watermarks.of(SystemClock.now(), guard.name());
    let before = mark();
    engine.on_push(granted(guard.name(), turn, 1));
    assert_eq!(mark(), before);
    assert!(guard.is_held());
}

/// A store whose turns have one fence, and which has lost data by the second.
#[derive(Debug)]
struct LosesData;

impl LockStore for LosesData {
    fn send(&self, command: Command, _: Instant) -> StoreFuture<'_, Reply> {
        let granted = |fence: u64, regressed| {
            let first = Fence::try_from(fence).expect("a fence");
            let (remaining, contended) = (Duration::from_secs(60), false);
            Granted { first, last: first, remaining, contended, regressed }
        };
        let reply = match command {
            Command::Acquire(_) => AcquireAnswer::Granted(granted(1, false)).into(),
            Command::Release(release) if release.next.is_some() => {
                ReleaseAnswer::NextGranted(granted(2, true)).into()
            }
            Command::Release(_) => ReleaseAnswer::Released.into(),
            // Where the release takes long.
            Command::Heartbeat(heartbeats) => {
                let place = Place { remaining: Duration::from_secs(60), ahead: 0 };
                let queued = |_| Ok(AcquireAnswer::Queued(place));
                Reply::Heartbeat(heartbeats.batch.iter().map(queued).collect())
            }
            other => unreachable!("nobody sends {}", other.word()),
        };
        Box::pin(ready(Ok(reply)))
    }

    fn listen(&self, _: RuntimeId, _: Weak<dyn Listener>) {}
}

/// Panics at each error of the log.
struct Panics;

impl Subscriber for Panics {
    fn enabled(&self, metadata: &Metadata<'_>) -> bool {
        *metadata.level() == Level::ERROR
    }

    fn new_span(&self, _: &span::Attributes<'_>) -> span::Id {
        span::Id::from_u64(1)
    }

    fn record(&self, _: &span::Id, _: &span::Record<'_>) {}

    fn record_follows_from(&self, _: &span::Id, _: &span::Id) {}

    fn event(&self, _: &Event<'_>) {
        panic!("a log that panics");
    }

    fn enter(&self, _: &span::Id) {}

    fn exit(&self, _: &span::Id) {}
}

#[tokio::test]
async fn a_log_that_panics_keeps_nobody_from_the_next_turn() {
    let store: Arc<dyn LockStore> = Arc::new(LosesData);
    let (engine, lock) = engine_on(&store);
    let guard = lock.acquire().await.expect("a free lock");
    let waiting = tokio::spawn(lock.acquire());
    tokio::task::yield_now().await;
    let log = tracing::subscriber::set_default(Panics);
    drop(guard);
    let next = waiting.await.expect("no panic here").expect("the next turn");
    assert_eq!(next.fence().get(), 2);
    drop(log);
    assert_eq!(engine.footprint().pending, 0);
}
