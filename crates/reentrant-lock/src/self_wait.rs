//! Whether a call waits for its own process: for a lease of its own task, or of a scope it is not
//! in.

use std::{
    sync::{Arc, PoisonError},
    task::Context,
    thread::{self, ThreadId},
    time::Duration,
};

use leasehold_core::{LockName, Sleep};
use leasehold_watchdog::HeldLease;
use tokio::task;

use crate::{
    engine::{Engine, Request},
    error::{AcquireError, SelfWait},
};

/// Who asks for a lock: in which task, and with which owner.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Caller {
    task: Task,
    owned: Owned,
}

/// Where a call is polled.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Task {
    Spawned(task::Id),
    /// What `block_on` runs has no id, and stays on its thread.
    Blocks(ThreadId),
}

/// Where the owner of a call comes from.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Owned {
    /// It is a fresh one, which nothing else can have.
    Fresh,
    /// It was given to the acquire.
    Given,
    /// It is the owner of the scope that the call is in.
    Scoped,
}

impl Caller {
    /// The task that runs now.
    pub(crate) fn here(owned: Owned) -> Self {
        let task =
            task::try_id().map_or_else(|| Task::Blocks(thread::current().id()), Task::Spawned);
        Self { task, owned }
    }

    /// How this call may wait for itself, if `holder` acquired the lock for which it waits.
    ///
    /// Tasks of one process contend for a lock in the usual way, too. What is suspicious: the very
    /// task that acquired it waits, or a call outside of every scope waits for one inside.
    pub(crate) fn waits_for_itself(self, holder: Self) -> Option<SelfWait> {
        match (self.owned, holder.owned) {
            (Owned::Fresh, _) if self.task == holder.task => Some(SelfWait::WithoutOwner),
            (Owned::Given | Owned::Scoped, _) if self.task == holder.task => {
                Some(SelfWait::OtherOwner)
            }
            (Owned::Fresh, Owned::Scoped) => Some(SelfWait::OutsideScope),
            _ => None,
        }
    }
}

/// Whether a call waits for its own process, as it looked when it began to wait.
#[derive(Default)]
pub(crate) enum Suspicion {
    /// It has not begun to wait.
    #[default]
    NotAsked,
    /// Nothing speaks for it.
    None,
    /// The lease that it waits for may never end while it waits.
    Found(Box<Suspect>),
}

/// A lease of this process that a call may wait for in vain.
pub(crate) struct Suspect {
    lease: Arc<HeldLease>,
    how: SelfWait,
    /// When to warn; `None` once that is done.
    alarm: Option<Sleep>,
}

impl Suspicion {
    /// How long a call waits for one lease before it is suspicious.
    const PATIENCE: Duration = Duration::from_secs(1);

    /// The call is about to wait on. Only a suspicious one sets a timer: most calls that wait are
    /// none.
    pub(crate) fn look(
        &mut self,
        engine: &Engine,
        name: &LockName,
        request: &Request,
        cx: &mut Context<'_>,
    ) {
        if let Self::NotAsked = self {
            *self = Self::of(engine, name, request);
        }
        let Self::Found(suspect) = self else { return };
        if suspect.alarm.as_mut().is_some_and(|alarm| alarm.as_mut().poll(cx).is_ready()) {
            suspect.alarm = None;
            suspect.warn(engine);
        }
    }

    fn of(engine: &Engine, name: &LockName, request: &Request) -> Self {
        let found = engine.holder(name).and_then(|(lease, holder)| {
            let how = request.caller?.waits_for_itself(holder)?;
            let clock = &engine.clock;
            let alarm = Some(clock.sleep_until(clock.now() + Self::PATIENCE));
            Some(Self::Found(Box::new(Suspect { lease, how, alarm })))
        });
        found.unwrap_or(Self::None)
    }

    /// A timeout says so, if the call has waited for that one lease all the time.
    pub(crate) fn explain(&self, error: &mut AcquireError) {
        if let (Self::Found(suspect), AcquireError::Timeout(timeout)) = (self, error)
            && suspect.lease.state().is_held()
        {
            timeout.self_wait = Some(suspect.how);
        }
    }
}

impl Suspect {
    /// A lock is warned of once in this time.
    const PAUSE: Duration = Duration::from_secs(60);

    fn warn(&self, engine: &Engine) {
        let Self { lease, how, .. } = self;
        if !lease.state().is_held() {
            return;
        }
        let now = engine.clock.now();
        let mut suspects = engine.suspects.lock().unwrap_or_else(PoisonError::into_inner);
        let Some(left_out) = suspects.take(lease.name(), now, Self::PAUSE) else { return };
        drop(suspects);
        let held_for = now.saturating_since(lease.since());
        tracing::warn!(
            lock = %lease.name(), lease = %lease.id(), fence = %lease.fence(), ?held_for, left_out,
            "a call may be waiting for its own process: {how}"
        );
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[tokio::test]
    async fn only_a_call_that_may_wait_for_itself_is_suspicious() {
        let caller = |owned| async move { Caller::here(owned) };
        let here = |owned| Caller::here(owned);
        let [fresh, scoped, given] = [Owned::Fresh, Owned::Scoped, Owned::Given];
        assert_eq!(here(fresh).waits_for_itself(here(fresh)), Some(SelfWait::WithoutOwner));
        assert_eq!(here(fresh).waits_for_itself(here(scoped)), Some(SelfWait::WithoutOwner));
        assert_eq!(here(scoped).waits_for_itself(here(fresh)), Some(SelfWait::OtherOwner));
        assert_eq!(here(given).waits_for_itself(here(given)), Some(SelfWait::OtherOwner));

        for (owned, suspicion) in
            [(fresh, Some(SelfWait::OutsideScope)), (scoped, None), (given, None)]
        {
            let other = tokio::spawn(caller(owned)).await.expect("a task");
            assert_eq!(other.waits_for_itself(here(scoped)), suspicion, "{owned:?}");
            // Tasks that contend for a lock without any scope are no news.
            assert_eq!(other.waits_for_itself(here(fresh)), None, "{owned:?}");
            assert_eq!(other.waits_for_itself(here(given)), None, "{owned:?}");
        }
    }
}
