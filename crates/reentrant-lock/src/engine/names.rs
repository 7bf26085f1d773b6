use std::{
    mem,
    sync::{
        Arc, MutexGuard,
        atomic::{AtomicBool, Ordering},
    },
};

use leasehold_core::{
    Clock, Instant, LockName, Mode, Mutex, NameMap, Origin, metric::ClassMetrics,
};
use leasehold_watchdog::{DueQueue, Key};
use tokio::sync::Notify;

use crate::{
    owner::{Caller, WeakOwner},
    queue::{Env, NameState, TurnId},
};

use super::kept::{IdleSince, KeptTurns};

/// The states of all names, and when something is due for one.
#[derive(Debug)]
pub(super) struct NameTable {
    origin: Origin,
    clock: Arc<dyn Clock>,
    shards: Vec<Mutex<Shard>>,
    pub(super) agenda: Arc<Agenda>,
    kept: KeptTurns,
    is_closed: AtomicBool,
}

/// A name, and which of its states: that of the tasks that write, or of those that read.
pub(super) type Side = (LockName, Mode);

/// The states of some names. What is known of each is boxed, so that empty slots of the maps stay small.
#[derive(Debug, Default)]
pub(super) struct Shard {
    writing: NameMap<Box<NameEntry>>,
    reading: NameMap<Box<NameEntry>>,
}

impl Shard {
    pub(super) fn of(&mut self, mode: Mode) -> &mut NameMap<Box<NameEntry>> {
        match mode {
            Mode::Write => &mut self.writing,
            Mode::Read => &mut self.reading,
        }
    }
}

#[derive(Debug)]
pub(crate) struct NameEntry {
    pub(crate) state: NameState,
    /// When the heartbeat task checks it.
    pub(super) scheduled: Option<Scheduled>,
    pub(super) metrics: Arc<ClassMetrics>,
    /// Where its idle turn stands among those of the runtime.
    pub(super) kept: Option<IdleSince>,
    /// Who took the lease that is held.
    pub(crate) holder: Option<Caller>,
    /// Its owner.
    pub(crate) owner: Option<WeakOwner>,
}

impl NameTable {
    const SHARDS: usize = 16;

    pub(super) fn new(origin: Origin, clock: &Arc<dyn Clock>) -> Self {
        Self {
            origin,
            clock: Arc::clone(clock),
            shards: (0..Self::SHARDS).map(|_| Mutex::default()).collect(),
            agenda: Arc::default(),
            kept: KeptTurns::default(),
            is_closed: AtomicBool::new(false),
        }
    }

    /// Locks the shard of a name; `None` in a fork if the mutex is locked there for ever.
    pub(super) fn lock(&self, name: &LockName) -> Option<MutexGuard<'_, Shard>> {
        self.shards[name.shard(Self::SHARDS)].lock_unless(|| self.is_forked())
    }

    /// As [`lock`](Self::lock), with an entry for the name; `None` also after the end.
    pub(super) fn lock_with(
        &self,
        name: &LockName,
        mode: Mode,
        metrics: &Arc<ClassMetrics>,
    ) -> Option<MutexGuard<'_, Shard>> {
        let mut shard = self.lock(name)?;
        // Asked while the shard is locked: the table is marked as closed before its shards are read, so a name
        // that is added here is seen there.
        if self.is_closed() {
            return None;
        }
        let names = shard.of(mode);
        if !names.contains_key(name) {
            let (state, metrics) = (NameState::default(), Arc::clone(metrics));
            let (scheduled, kept, holder, owner) = (None, None, None, None);
            let entry = NameEntry { state, scheduled, metrics, kept, holder, owner };
            names.insert(name.clone(), Box::new(entry));
        }
        Some(shard)
    }

    /// From now on no name is added.
    pub(super) fn close(&self) {
        self.is_closed.store(true, Ordering::SeqCst);
    }

    pub(super) fn is_closed(&self) -> bool {
        self.is_closed.load(Ordering::SeqCst)
    }

    /// An event was applied: counts the turn if it is kept idle, and notes when something is due. If too
    /// many turns are kept, returns the one that was idle least recently.
    pub(super) fn on_applied(
        &self,
        entry: &mut NameEntry,
        env: &Env<'_>,
    ) -> Option<(IdleSince, Side)> {
        let at = entry.state.look_at(env).filter(|_| !entry.state.is_done());
        self.agenda.set(&mut entry.scheduled, at, (env.name, env.mode));
        if entry.state.is_idle() {
            return self.kept.on_idle(env.now, &mut entry.kept, (env.name, env.mode));
        }
        if env.effects.ended.is_some()
            && let Some(stamp) = entry.kept.take()
        {
            self.kept.on_end(stamp);
        }
        None
    }

    /// Looks at every state.
    pub(super) fn each(&self, mut look: impl FnMut(&LockName, Mode, &NameState)) {
        for shard in &self.shards {
            let Some(mut shard) = shard.lock_unless(|| self.is_forked()) else { continue };
            for mode in [Mode::Write, Mode::Read] {
                shard.of(mode).iter().for_each(|(name, entry)| look(name, mode, &entry.state));
            }
        }
    }

    /// The names whose states are chosen by `of`.
    pub(super) fn names_of(&self, of: impl Fn(&NameState) -> bool) -> Vec<Side> {
        let mut names = Vec::new();
        self.each(|name, mode, state| names.extend(of(state).then(|| (name.clone(), mode))));
        // No order of a hash map gets out.
        names.sort_unstable();
        names
    }

    /// Takes all names out; yields the turns that are idle.
    pub(super) fn take_idle(&mut self) -> Vec<(LockName, TurnId)> {
        let shards = self.shards.iter_mut().map(Mutex::get_mut).map(mem::take);
        let names = shards.flat_map(|shard| shard.writing.into_iter().chain(shard.reading));
        let turn =
            |(name, entry): (LockName, Box<NameEntry>)| Some((name, entry.state.idle_turn()?));
        let mut idle: Vec<_> = names.filter_map(turn).collect();
        // No order of a hash map gets out.
        idle.sort_unstable_by(|(one, _), (other, _)| one.cmp(other));
        idle
    }

    fn is_forked(&self) -> bool {
        !self.origin.is_here(self.clock.now())
    }
}

/// When something is due for which name.
#[derive(Debug, Default)]
pub(super) struct Agenda {
    names: Mutex<DueQueue<Side>>,
    /// Also notified when the engine is dropped.
    pub(super) changed: Notify,
}

#[derive(Debug, Clone, Copy)]
pub(super) struct Scheduled {
    pub(super) key: Key,
    at: Instant,
}

impl Agenda {
    /// Makes sure that a name is checked by `at`, or not at all.
    fn set(
        &self,
        present: &mut Option<Scheduled>,
        at: Option<Instant>,
        (name, mode): (&LockName, Mode),
    ) {
        let key = match (*present, at) {
            (None, None) => return,
            (Some(present), Some(at)) if present.at <= at => return,
            (present, _) => present.map(|present| present.key),
        };
        let mut names = self.names.lock();
        let Some(at) = at else {
            *present = None;
            let removed = key.and_then(|key| names.remove(key));
            drop(names);
            return drop(removed);
        };
        if let Some(key) = key {
            names.reschedule(key, at);
        }
        let key = key.unwrap_or_else(|| names.insert(at, (name.clone(), mode)));
        *present = Some(Scheduled { key, at });
        if names.must_wake_for(at) {
            self.changed.notify_one();
        }
    }

    /// The names that are due until `until`.
    pub(super) fn take_due(&self, until: Instant) -> Vec<(Key, Side)> {
        let mut names = self.names.lock();
        if names.earliest().is_none_or(|at| at > until) {
            return Vec::new();
        }
        let keys: Vec<Key> = names.due(until).map(|(_, key)| key).collect();
        keys.into_iter().filter_map(|key| Some((key, names.remove(key)?))).collect()
    }

    pub(super) fn sleep_until(&self, now: Instant, latest: Instant) -> Instant {
        self.names.lock().sleep_until(now, latest)
    }
}
