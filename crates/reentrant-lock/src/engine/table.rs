use std::{
    sync::{Arc, MutexGuard, atomic::Ordering},
    task::Waker,
};

use leasehold_core::{Instant, LockName, Mutex, NameMap, lease::LossReason, metric::ClassMetrics};
use leasehold_watchdog::{DueQueue, HeldLease, Key, Watch};
use tokio::sync::Notify;

use crate::{
    cohort::{Cohort, Effects, Env},
    owner::Caller,
};

use super::{core::Engine, kept::IdleSince};

/// Cohorts by name. Boxed, so that empty slots of the map stay small.
pub(super) type Shard = Mutex<Cohorts>;

type Cohorts = NameMap<Box<Member>>;

#[derive(Debug)]
pub(super) struct Member {
    pub(super) cohort: Cohort,
    /// When the heartbeats' task looks at it.
    pub(super) scheduled: Option<Scheduled>,
    pub(super) metrics: Arc<ClassMetrics>,
    /// Where its idle turn stands among those of the runtime.
    pub(super) kept: Option<IdleSince>,
    pub(super) holder: Option<Caller>,
}

impl Engine {
    /// No task gets a lease any more, once the present events are over.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
        for name in self.names_of(|_| true) {
            self.with(&name, |member, env| member.cohort.on_close(env));
        }
    }

    /// How many names are known, how many tasks wait for them, and how many turns are idle.
    pub(super) fn count(&self) -> (usize, usize, usize) {
        let (mut names, mut waiting, mut idle) = (0, 0, 0);
        for shard in &self.shards {
            // Sums: the order of a hash map does not show in them.
            let Some(shard) = shard.lock_unless(|| self.is_forked()) else { continue };
            for Member { cohort, .. } in shard.values().map(|member| &**member) {
                names += 1;
                waiting += cohort.waiting();
                idle += usize::from(cohort.is_idle());
            }
        }
        (names, waiting, idle)
    }

    pub(crate) fn look<T>(&self, name: &LockName, look: impl FnOnce(&Cohort) -> T) -> Option<T> {
        self.shard(name)?.get(name).map(|member| look(&member.cohort))
    }

    /// The lease that a task of this runtime holds, and who took it.
    pub(crate) fn holder(&self, name: &LockName) -> Option<(Arc<HeldLease>, Caller)> {
        let shard = self.shard(name)?;
        let member = shard.get(name)?;
        let lease = self.watches.holder(member.cohort.watch()?)?;
        Some((lease, member.holder?))
    }

    pub(super) fn with<T>(
        &self,
        name: &LockName,
        event: impl FnOnce(&mut Member, &mut Env<'_>) -> T,
    ) -> Option<T> {
        self.apply(self.shard(name)?, name, event)
    }

    /// Applies an event to a cohort that is made if there is none; `None` after the end, and in a
    /// fork.
    pub(super) fn with_new<T>(
        &self,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        event: impl FnOnce(&mut Member, &mut Env<'_>) -> T,
    ) -> Option<T> {
        let mut shard = self.shard(name)?;
        // Under the lock: `close` looks at the shard afterwards.
        if self.is_closed.load(Ordering::SeqCst) {
            return None;
        }
        if !shard.contains_key(name) {
            let (cohort, metrics) = (Cohort::default(), Arc::clone(metrics));
            let member = Member { cohort, scheduled: None, metrics, kept: None, holder: None };
            shard.insert(name.clone(), Box::new(member));
        }
        self.apply(shard, name, event)
    }

    /// Applies an event under the lock of its shard, and does what follows from it outside.
    fn apply<T>(
        &self,
        mut shard: MutexGuard<'_, Cohorts>,
        name: &LockName,
        event: impl FnOnce(&mut Member, &mut Env<'_>) -> T,
    ) -> Option<T> {
        let member = shard.get_mut(name)?;
        let mut env = self.env(name);
        if !self.is_here(env.now) {
            return None;
        }
        let answer = event(member, &mut env);
        // Inside the lock: a shutdown that comes after it waits for what is pending by then.
        let jobs = if env.effects.sends() { self.prepare(&mut env, member) } else { Vec::new() };
        let Effects { ended, kept, .. } = env.effects;
        let counted = (ended.is_some() || kept.is_some()).then(|| {
            let metrics = env.effects.metrics.take();
            metrics.unwrap_or_else(|| Arc::clone(&member.metrics))
        });
        let may_be_kept = member.cohort.may_be_kept();
        let mut evicted = None;
        if member.cohort.is_idle() {
            evicted = self.kept.on_idle(env.now, &mut member.kept, name);
        } else if ended.is_some()
            && let Some(stamp) = member.kept.take()
        {
            self.kept.on_end(stamp);
        }
        if member.cohort.is_done() {
            self.agenda.cancel(member.scheduled);
            shard.remove(name);
        } else if let Some(at) = member.cohort.look_at(&env) {
            self.agenda.set(&mut member.scheduled, at, name);
        } else {
            self.agenda.cancel(member.scheduled.take());
        }
        drop(shard);
        let Effects { wake, discarded, send, forget, lost, .. } = env.effects;
        drop(discarded);
        if let Some(watch) = forget {
            self.forget(watch, lost);
        }
        wake.into_iter().for_each(Waker::wake);
        if let Some(metrics) = counted {
            if let Some(ended) = ended {
                metrics.turn(ended.leases);
            }
            if let Some(outcome) = kept {
                metrics.kept(outcome);
            }
        }
        if let Some(ended) = ended.filter(|_| may_be_kept) {
            self.on_kept_turn_end(name, ended);
        }
        if let Some(command) = send {
            self.send(command);
        }
        // They go on in the runtime.
        drop(jobs);
        if let Some((stamp, name)) = evicted {
            self.evict(stamp, &name);
        }
        Some(answer)
    }

    /// Watches a turn no longer; the lease of it that is held is marked as lost.
    fn forget(&self, watch: Watch, lost: Option<LossReason>) {
        if let Some(reason) = lost
            && let Some(lease) = self.watches.holder(watch)
        {
            let _ = lease.lose(reason);
        }
        self.watches.forget(watch);
    }

    fn env<'a>(&'a self, name: &'a LockName) -> Env<'a> {
        let Self { clock, entropy, numbers, timing, rules, .. } = self;
        let (now, effects) = (clock.now(), Effects::default());
        Env { name, now, entropy: &**entropy, numbers, timing, rules, effects }
    }

    pub(super) fn names_of(&self, of: impl Fn(&Cohort) -> bool) -> Vec<LockName> {
        let mut names: Vec<LockName> = Vec::new();
        for shard in &self.shards {
            let Some(shard) = shard.lock_unless(|| self.is_forked()) else { continue };
            let chosen = shard.iter().filter(|(_, member)| of(&member.cohort));
            names.extend(chosen.map(|(name, _)| name.clone()));
        }
        // No order of a hash map gets out.
        names.sort_unstable();
        names
    }

    /// `None` in a fork, if the lock will never be let go.
    fn shard(&self, name: &LockName) -> Option<MutexGuard<'_, Cohorts>> {
        self.shards[name.shard(Self::SHARDS)].lock_unless(|| self.is_forked())
    }
}

/// When to look at which name.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    state: Mutex<Entries>,
    pub(super) changed: Notify,
}

#[derive(Debug, Default)]
struct Entries {
    names: DueQueue<LockName>,
    stopped: bool,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Scheduled {
    pub(super) key: Key,
    at: Instant,
}

impl Agenda {
    /// Makes sure that a name is looked at at `at` at the latest.
    pub(super) fn set(&self, present: &mut Option<Scheduled>, at: Instant, name: &LockName) {
        if present.is_some_and(|present| present.at <= at) {
            return;
        }
        let mut state = self.state.lock();
        if let Some(Scheduled { key, .. }) = *present {
            state.names.reschedule(key, at);
            *present = Some(Scheduled { key, at });
        } else {
            *present = Some(Scheduled { key: state.names.insert(at, name.clone()), at });
        }
        if state.names.must_wake_for(at) {
            self.changed.notify_one();
        }
    }

    pub(super) fn cancel(&self, present: Option<Scheduled>) {
        if let Some(Scheduled { key, .. }) = present {
            let removed = self.state.lock().names.remove(key);
            drop(removed);
        }
    }

    /// The names that are due until `until`; `None` when stopped.
    pub(super) fn take_due(&self, until: Instant) -> Option<Vec<(Key, LockName)>> {
        let mut state = self.state.lock();
        if state.stopped {
            return None;
        }
        if state.names.earliest().is_none_or(|at| at > until) {
            return Some(Vec::new());
        }
        let keys: Vec<Key> = state.names.due(until).map(|(_, key)| key).collect();
        let take = |key| state.names.remove(key).map(|name| (key, name));
        Some(keys.into_iter().filter_map(take).collect())
    }

    pub(super) fn sleep_until(&self, now: Instant, latest: Instant) -> Instant {
        self.state.lock().names.sleep_until(now, latest)
    }

    pub(super) fn is_stopped(&self) -> bool {
        self.state.lock().stopped
    }

    pub(super) fn stop(&self) {
        self.state.lock().stopped = true;
        self.changed.notify_one();
    }
}
