use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Clock, Entropy, LockName, LockStore, MemoryStore, RuntimeLabel, SystemClock, SystemEntropy,
    lease::{LeaseEnd, LossReason},
};

use crate::{
    Engine, EngineParts, Executor, Guard, LeaseLost, ReentrantLock, ReleaseError, Timing,
    cohort::{Effects, TurnId},
    seam::Rules,
};

async fn scene() -> (Arc<Engine>, Guard) {
    let clock: Arc<dyn Clock> = Arc::new(SystemClock);
    let entropy: Arc<dyn Entropy> = Arc::new(SystemEntropy);
    let store: Arc<dyn LockStore> =
        Arc::new(MemoryStore::new(Arc::clone(&clock), leasehold_core::FenceSettings::default()));
    let engine = Engine::start(EngineParts {
        store,
        clock,
        runtime_id: entropy.runtime_id(),
        entropy,
        executor: Executor::current().expect("a test of tokio"),
        label: RuntimeLabel::new("a test"),
        timing: Timing { wait: Duration::from_secs(5), ..Timing::default() },
        rules: Rules::default(),
    });
    let name = LockName::new("orders/42").expect("a name");
    let lock = ReentrantLock::new(Arc::clone(&engine), name);
    (engine, lock.acquire().await.expect("a free lock"))
}

/// A force-release has taken the turn from the cohort, and its lease is not marked as lost yet.
fn taken_away(engine: &Engine, guard: &Guard) -> Effects {
    let grant = Arc::clone(guard.lease().0.turn());
    let taken = engine.with(guard.name(), |member, env| {
        member.cohort.on_gone(env, TurnId::of(&grant));
        std::mem::take(&mut env.effects)
    });
    let effects = taken.expect("the name is known");
    assert_eq!(effects.lost, Some(LossReason::Gone));
    assert!(guard.is_held(), "it is not marked yet");
    effects
}

#[tokio::test]
async fn a_release_between_a_force_release_and_its_mark_says_lost() {
    let (engine, guard) = scene().await;
    let (effects, lost) = (taken_away(&engine, &guard), guard.lost());
    let told = guard.release().await;
    assert!(
        matches!(told, Err(ReleaseError::Lost(LeaseLost { reason: LossReason::Gone, .. }))),
        "{told:?}"
    );
    assert_eq!(lost.await, LeaseEnd::Lost(LossReason::Gone));
    drop(effects);
}

#[tokio::test]
async fn a_drop_between_a_force_release_and_its_mark_is_a_loss() {
    let (engine, guard) = scene().await;
    let (effects, lost) = (taken_away(&engine, &guard), guard.lost());
    drop(guard);
    assert_eq!(lost.await, LeaseEnd::Lost(LossReason::Gone));
    drop(effects);
}
