use std::{
    collections::HashMap,
    hash::{BuildHasher, RandomState},
    sync::{
        Arc, Mutex, MutexGuard, OnceLock, PoisonError, Weak,
        atomic::{AtomicBool, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    Clock, Entropy, LockName, LockStore, RuntimeLabel, Ttl,
    lease::LossReason,
    metric::{ClassMetrics, Metrics},
    store::Listener,
};
use leasehold_watchdog::{HeldLease, Key, Watch, Watches};
use tokio::{runtime::Handle, sync::Semaphore};

use crate::{
    blocked::Ration,
    caller::Caller,
    cohort::{Cohort, Effects, Moment, Numbers},
    engine::{Reaper, Timing, Watermarks},
    seam::Rules,
};

use super::agenda::{Agenda, Appointment};

/// What the cohorts of a runtime share.
#[derive(Debug)]
pub(crate) struct Shared {
    pub(crate) store: Arc<dyn LockStore>,
    pub(crate) clock: Arc<dyn Clock>,
    pub(crate) entropy: Arc<dyn Entropy>,
    pub(crate) metrics: Arc<Metrics>,
    pub(crate) watches: Arc<Watches>,
    pub(crate) reaper: Reaper,
    pub(crate) watermarks: Watermarks,
    pub(crate) label: RuntimeLabel,
    pub(crate) timing: Timing,
    pub(crate) numbers: Numbers,
    pub(crate) rules: Rules,
    pub(crate) runtime: Handle,
    pub(crate) reports: Mutex<Ration>,
    /// The calls that may wait for their own process, and were warned of.
    pub(crate) suspects: Mutex<Ration>,
    /// The runs that succeeded without a confirmation, and were warned of.
    pub(crate) unconfirmed: Mutex<Ration>,
}

/// The cohorts of all names that tasks of this runtime want; one is forgotten when it is idle.
///
/// An event is applied under the lock of the name's shard; whatever follows from it is done
/// afterwards, outside of it. Inside it, only locks are taken that call nobody back.
#[derive(Debug)]
pub(crate) struct Cohorts {
    pub(crate) shared: Shared,
    shards: Vec<Shard>,
    hasher: RandomState,
    pub(super) agenda: Agenda,
    /// Of very many guards that are dropped at once only so many are released at a time, unless
    /// that takes longer than a claim window.
    pub(super) dropping: Semaphore,
    closed: AtomicBool,
    listening: OnceLock<()>,
    me: Weak<Self>,
}

/// Cohorts by name; boxed, for a hash map has room for more than it holds.
type Shard = Mutex<HashMap<LockName, Box<Member>>>;

/// A cohort, and what is kept beside it.
#[derive(Debug)]
pub(super) struct Member {
    pub(super) cohort: Cohort,
    appointment: Option<Appointment>,
    metrics: Arc<ClassMetrics>,
    /// Who took the last lease.
    pub(super) holder: Option<Caller>,
}

impl Cohorts {
    /// How many locks the names are spread over.
    const SHARDS: usize = 16;
    /// How many dropped guards are released at a time.
    const DROPPING: usize = 64;

    pub(crate) fn new(shared: Shared) -> Arc<Self> {
        Arc::new_cyclic(|me| Self {
            shared,
            shards: (0..Self::SHARDS).map(|_| Mutex::default()).collect(),
            hasher: RandomState::new(),
            agenda: Agenda::default(),
            dropping: Semaphore::new(Self::DROPPING),
            closed: AtomicBool::new(false),
            listening: OnceLock::new(),
            me: Weak::clone(me),
        })
    }

    /// Listens to what the store tells this runtime, from the first call on.
    pub(crate) fn listen(&self) {
        self.listening.get_or_init(|| {
            let me: Weak<dyn Listener> = Weak::clone(&self.me) as _;
            self.shared.store.listen(self.shared.numbers.runtime(), me);
        });
    }

    /// Nobody is let in any more, once the present events are over.
    pub(crate) fn close(&self) {
        self.closed.store(true, Ordering::SeqCst);
        for name in self.names() {
            self.with(&name, |member, m| ((), member.cohort.close(m)));
        }
    }

    /// Whether nobody is let in any more.
    pub(crate) fn is_closed(&self) -> bool {
        self.closed.load(Ordering::SeqCst)
    }

    /// How many names are known, and how many tasks wait for them.
    pub(crate) fn count(&self) -> (usize, usize) {
        let (mut names, mut waiting) = (0, 0);
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            names += shard.len();
            // A sum: the order of a hash map does not show in it.
            waiting += shard.values().map(|member| member.cohort.waiting()).sum::<usize>();
        }
        (names, waiting)
    }

    /// Looks at a cohort, if there is one.
    pub(crate) fn look<T>(&self, name: &LockName, look: impl FnOnce(&Cohort) -> T) -> Option<T> {
        self.shard(name).get(name).map(|member| look(&member.cohort))
    }

    /// The lease of a name that a task of this runtime holds, if one does.
    pub(crate) fn held_here(&self, name: &LockName) -> Option<Arc<HeldLease>> {
        let watch = self.look(name, Cohort::watch).flatten()?;
        self.shared.watches.holder(watch)
    }

    /// The lease of a name that a task of this runtime holds, and who took it.
    pub(crate) fn holder(&self, name: &LockName) -> Option<(Arc<HeldLease>, Caller)> {
        let shard = self.shard(name);
        let member = shard.get(name)?;
        let lease = self.shared.watches.holder(member.cohort.watch()?)?;
        Some((lease, member.holder?))
    }

    /// Applies an event to a cohort, if there is one.
    pub(super) fn with<T>(
        &self,
        name: &LockName,
        event: impl FnOnce(&mut Member, &Moment<'_>) -> (T, Effects),
    ) -> Option<T> {
        self.apply(self.shard(name), name, event)
    }

    /// Applies an event to a cohort that is made if there is none; `None` after the end.
    pub(super) fn with_new<T>(
        &self,
        name: &LockName,
        metrics: &Arc<ClassMetrics>,
        event: impl FnOnce(&mut Member, &Moment<'_>) -> (T, Effects),
    ) -> Option<T> {
        let mut shard = self.shard(name);
        // Under the lock: whoever closes looks at the shard afterwards.
        if self.closed.load(Ordering::SeqCst) {
            return None;
        }
        if !shard.contains_key(name) {
            let (cohort, metrics) = (Cohort::new(), Arc::clone(metrics));
            let member = Member { cohort, appointment: None, metrics, holder: None };
            shard.insert(name.clone(), Box::new(member));
        }
        self.apply(shard, name, event)
    }

    /// Applies an event under the lock of its shard, and does what follows from it outside.
    fn apply<T>(
        &self,
        mut shard: MutexGuard<'_, HashMap<LockName, Box<Member>>>,
        name: &LockName,
        event: impl FnOnce(&mut Member, &Moment<'_>) -> (T, Effects),
    ) -> Option<T> {
        let member = shard.get_mut(name)?;
        let moment = self.moment(name);
        let (answer, mut effects) = event(member, &moment);
        let metrics = effects.metrics.take().unwrap_or_else(|| Arc::clone(&member.metrics));
        // Inside the lock: a shutdown that comes after it waits for what is pending by then.
        let command = effects.send.take().and_then(|send| self.announce(name, &metrics, send));
        let withdraw = |withdrawal| self.announce_withdrawal(name, &metrics, withdrawal);
        let withdrawals: Vec<_> = effects.withdraw.drain(..).map(withdraw).collect();
        let discarded = member.cohort.take_discarded();
        if self.settle(member, &moment) {
            shard.remove(name);
        }
        drop(shard);
        drop(discarded);
        self.perform(&metrics, effects);
        if let Some(command) = command {
            drop(self.shared.runtime.spawn(command.drive()));
        }
        for (announced, job) in withdrawals {
            self.shared.reaper.take_announced(announced, job);
        }
        Some(answer)
    }

    /// Sees to it that a cohort is looked at in time; whether it is idle, and to be forgotten.
    fn settle(&self, member: &mut Member, m: &Moment<'_>) -> bool {
        let done = member.cohort.is_done();
        if done {
            self.agenda.cancel(member.appointment);
        } else if let Some(at) = member.cohort.look_at(m) {
            self.agenda.set(&mut member.appointment, at, m.name);
        } else if member.cohort.waiting() == 0 {
            // A quiet turn, of which there are very many; among tasks that wait there is soon a look.
            self.agenda.cancel(member.appointment.take());
        }
        done
    }

    /// Does what follows at once.
    fn perform(&self, metrics: &ClassMetrics, effects: Effects) {
        let Effects { wake, wake_all, forget, lost, ended, .. } = effects;
        if let Some(watch) = forget {
            self.shared.forget(watch, lost);
        }
        for waker in wake.into_iter().chain(wake_all) {
            waker.wake();
        }
        if let Some(leases) = ended {
            metrics.turn(leases);
        }
    }

    pub(super) fn moment<'a>(&'a self, name: &'a LockName) -> Moment<'a> {
        let Shared { clock, entropy, numbers, timing, rules, .. } = &self.shared;
        let (now, jitter) = (clock.now(), entropy.fraction());
        Moment { name, now, jitter, numbers, timing, rules }
    }

    /// The names that are known, in their order.
    fn names(&self) -> Vec<LockName> {
        self.names_of(|_| true)
    }

    /// The names of certain cohorts, in their order.
    pub(super) fn names_of(&self, of: impl Fn(&Cohort) -> bool) -> Vec<LockName> {
        let mut names: Vec<LockName> = Vec::new();
        for shard in &self.shards {
            let shard = shard.lock().unwrap_or_else(PoisonError::into_inner);
            let chosen = shard.iter().filter(|(_, member)| of(&member.cohort));
            names.extend(chosen.map(|(name, _)| name.clone()));
        }
        // No order of a hash map gets out.
        names.sort_unstable();
        names
    }

    fn shard(&self, name: &LockName) -> MutexGuard<'_, HashMap<LockName, Box<Member>>> {
        let hash = usize::try_from(self.hasher.hash_one(name) % Self::SHARDS as u64).unwrap_or(0);
        self.shards[hash].lock().unwrap_or_else(PoisonError::into_inner)
    }

    pub(super) fn myself(&self) -> Option<Arc<Self>> {
        self.me.upgrade()
    }
}

impl Shared {
    /// How long a command may take that carries a place.
    pub(super) fn place_deadline(&self, ttl: Ttl) -> Duration {
        let Self { timing, rules, .. } = self;
        (rules.place_deadline)(timing.heartbeat_time(ttl), timing.command_deadline(ttl))
    }

    /// Watches a turn no longer; whoever holds a lease of it is told why it is lost.
    fn forget(&self, watch: Watch, lost: Option<LossReason>) {
        if let Some(lease) = lost.and_then(|_| self.watches.holder(watch)) {
            let _ = lost.map(|reason| lease.lose(reason));
        }
        self.watches.forget(watch);
    }
}

impl Member {
    /// The driver looks at it, as the entry of a key said.
    pub(super) fn keeps_appointment(&mut self, key: Key) {
        self.appointment = self.appointment.filter(|present| !present.is(key));
    }
}
