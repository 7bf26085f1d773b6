use std::{
    sync::{Arc, MutexGuard},
    task::Waker,
};

use leasehold_core::{
    AcquisitionId, Class, Fence, Instant, LockName, Mode, Terms,
    lease::{Grant, HoldUpdate, LeaseState, LossReason},
    metric::{ClassMetrics, HoldEnd, KeptOutcome, ReleaseOutcome, ReleaseVia},
    store::{AcquireAnswer, Granted, Heartbeats, Renewal, Renewals, Waiter, only},
};
use leasehold_watchdog::{HeldLease, ReleasedLease};

use crate::{
    owner::{Caller, Owner, SharedLease},
    queue::{Beat, Effects, Env, NameState, Outgoing, TimedAnswer, TurnId},
};

use super::{
    core::Engine,
    delivery::{Belief, Delivery, DeliveryKind},
    kept::IdleSince,
    names::{NameEntry, Shard},
    sending::Cleanup,
};

/// How events reach the states of names, and what follows from them.
impl Engine {
    pub(crate) fn look<T>(
        &self,
        name: &LockName,
        mode: Mode,
        look: impl FnOnce(&NameState) -> T,
    ) -> Option<T> {
        self.names.lock(name)?.of(mode).get(name).map(|entry| look(&entry.state))
    }

    /// What an acquisition of this runtime asks for: to read, if it is known for that.
    pub(super) fn mode_of(&self, name: &LockName, id: AcquisitionId) -> Mode {
        let reads = self.look(name, Mode::Read, |state| state.is_about(id)) == Some(true);
        if reads { Mode::Read } else { Mode::Write }
    }

    /// The lease that a task of this runtime holds, and who took it.
    pub(crate) fn holder(&self, name: &LockName) -> Option<(Arc<HeldLease>, Caller)> {
        let mut shard = self.names.lock(name)?;
        let mut of = |mode| {
            let entry = shard.of(mode).get(name)?;
            let lease = self.watches.holder(entry.state.watch()?)?;
            Some((lease, entry.holder?))
        };
        of(Mode::Write).or_else(|| of(Mode::Read))
    }

    /// The owner that holds a lock, if one does.
    pub(crate) fn owner_of(&self, name: &LockName) -> Option<Owner> {
        let owner = self.names.lock(name)?.of(Mode::Write).get(name)?.owner.as_ref()?.upgrade()?;
        let is_held = owner.held(name)?.lease.is_held();
        is_held.then_some(owner)
    }

    /// The owners that hold a lock, in the order of the locks' names.
    pub(crate) fn owners(&self) -> Vec<Owner> {
        let names = self.names.names_of(NameState::is_known_held);
        names.iter().filter_map(|(name, _)| self.owner_of(name)).collect()
    }

    /// Applies an event to the state of a name, if it has one; `None` also in a fork.
    pub(crate) fn with<T>(
        &self,
        name: &LockName,
        mode: Mode,
        event: impl FnOnce(&mut NameEntry, &mut Env<'_>) -> T,
    ) -> Option<T> {
        self.apply(self.names.lock(name)?, (name, mode), event)
    }

    /// Applies an event to the state of a name, which is made if there is none; `None` after the
    /// end, and in a fork.
    pub(crate) fn with_new<T>(
        &self,
        name: &LockName,
        mode: Mode,
        metrics: &Arc<ClassMetrics>,
        event: impl FnOnce(&mut NameEntry, &mut Env<'_>) -> T,
    ) -> Option<T> {
        self.apply(self.names.lock_with(name, mode, metrics)?, (name, mode), event)
    }

    /// Applies an event under the lock of its shard, and does what follows from it outside.
    fn apply<T>(
        &self,
        mut shard: MutexGuard<'_, Shard>,
        (name, mode): (&LockName, Mode),
        event: impl FnOnce(&mut NameEntry, &mut Env<'_>) -> T,
    ) -> Option<T> {
        let entry = shard.of(mode).get_mut(name)?;
        let Self { clock, entropy, numbers, timing, rules, .. } = self;
        let (now, effects) = (clock.now(), Effects::default());
        let mut env = Env { name, mode, now, entropy: &**entropy, numbers, timing, rules, effects };
        if !self.is_here(now) {
            return None;
        }
        let answer = event(entry, &mut env);
        // Inside the lock: a shutdown that comes after it waits for what is pending by then.
        let cleanups = self.make_pending(&mut env, entry);
        let evicted = self.names.on_applied(entry, &env);
        let mut effects = env.effects;
        if effects.ended.is_some() || effects.kept.is_some() || effects.settled.is_some() {
            effects.metrics.get_or_insert_with(|| Arc::clone(&entry.metrics));
        }
        if entry.state.is_done() {
            shard.of(mode).remove(name);
        }
        drop(shard);
        self.carry_out(name, effects);
        // They go on in the runtime.
        drop(cleanups);
        if let Some((stamp, (name, mode))) = evicted {
            self.evict(stamp, &name, mode);
        }
        Some(answer)
    }

    /// Makes the releases and withdrawals of an event pending. Not to be dropped inside of a lock.
    fn make_pending(&self, env: &mut Env<'_>, entry: &mut NameEntry) -> Vec<Cleanup> {
        let (mut cleanups, effects) = (Vec::new(), &mut env.effects);
        let metrics = effects.metrics.as_ref().unwrap_or(&entry.metrics);
        if let Some(release) = effects.release.take() {
            let release = Delivery::release(env.now, (env.name, env.mode), metrics, release);
            cleanups.extend(Cleanup::new(self, release));
        }
        for (id, ttl) in effects.withdraw.drain(..) {
            let (via, kind) = (Some(ReleaseVia::Withdraw), DeliveryKind::Withdraw);
            let of = (env.name, env.mode);
            let withdrawal = Delivery::of(env.now, of, metrics, id, ttl, kind);
            let withdrawal = Delivery { via, ..withdrawal };
            let hurry = Arc::clone(&withdrawal.hurry);
            if let Some(cleanup) = Cleanup::new(self, withdrawal) {
                entry.state.withdrawals.add(id, hurry);
                cleanups.push(cleanup);
            }
        }
        cleanups
    }

    /// Does what a rule has asked for, outside of every lock.
    fn carry_out(&self, name: &LockName, effects: Effects) {
        drop(effects.discarded);
        if let Some(watch) = effects.ended.and_then(|ended| ended.watch) {
            // The lease of it that is held is over.
            if let Some(reason) = effects.lost
                && let Some(lease) = self.watches.holder(watch)
            {
                let _ = lease.lose(reason);
            }
            self.watches.forget(watch);
        }
        effects.wake.into_iter().for_each(Waker::wake);
        effects.hurry.iter().for_each(|sender| sender.notify_one());
        effects.wake_tries.iter().for_each(|tries| tries.notify_waiters());
        if let Some(metrics) = effects.metrics {
            effects.ended.iter().for_each(|ended| metrics.turn(ended.leases));
            effects.kept.into_iter().for_each(|outcome| metrics.kept(outcome));
            effects.settled.iter().for_each(|via| metrics.release(ReleaseOutcome::Released, *via));
        }
        if let Some(ended) = effects.ended.filter(|ended| ended.may_be_kept) {
            self.watermarks.on_kept_turn_end(name, ended);
        }
        let Some(command) = effects.send else { return };
        let Some(engine) = self.me.upgrade() else { return };
        match command {
            Outgoing::Confirm(grant) => self.spawn(engine.confirm(*grant)),
            Outgoing::Heartbeat(beat) => self.spawn(engine.beat(vec![*beat])),
        }
    }

    fn evict(&self, stamp: IdleSince, name: &LockName, mode: Mode) {
        self.with(name, mode, |entry, env| {
            // Unless it became idle again a while later: then it has another stamp.
            if entry.kept == Some(stamp) {
                entry.kept = None;
                entry.state.end_idle(env, KeptOutcome::Lapsed);
            }
        });
    }

    /// A lease is released. Yields the release that its holder sends, which is pending before the
    /// lease shows as over; `None` if the turn goes on, or the runtime ends it.
    ///
    /// # Errors
    ///
    /// Why the lease had been lost before.
    pub(crate) fn release(
        &self,
        held: &SharedLease,
        end: HoldEnd,
    ) -> Result<Option<Cleanup>, LossReason> {
        let SharedLease { lease, owner, .. } = held;
        let via = if end == HoldEnd::Dropped { ReleaseVia::Drop } else { ReleaseVia::Explicit };
        let released = self.with(lease.name(), lease.turn().mode(), |entry, env| {
            if !entry.state.has_lease(lease.fence()) {
                return None;
            }
            env.effects.metrics = Some(Arc::clone(lease.metrics()));
            let released = lease.release(env.now);
            let cleanup = self.leave_turn(&mut entry.state, env, lease, &released, via);
            Some((released, cleanup))
        });
        let (released, cleanup) = released.flatten().unwrap_or_else(|| {
            // Whatever else ends a turn marks its lease as lost first: then this has no effect.
            let _ = lease.lose(LossReason::ForceReleased);
            (lease.release(self.clock.now()), None)
        });
        let before = released.state;
        released.notify(end);
        if let Some(owner) = owner
            && before != LeaseState::Lost(LossReason::Forked)
        {
            owner.forget(lease);
        }
        if let LeaseState::Lost(reason) = before {
            if worth_releasing(reason) {
                self.release_lost(lease, via);
            }
            return Err(reason);
        }
        Ok(cleanup)
    }

    /// Takes a lease that was released off its turn; the runtime keeps the lock if other tasks wait.
    /// Yields the release for its holder to send.
    fn leave_turn(
        &self,
        state: &mut NameState,
        env: &mut Env<'_>,
        lease: &Arc<HeldLease>,
        released: &ReleasedLease,
        via: ReleaseVia,
    ) -> Option<Cleanup> {
        let closed_until = released.closed_until;
        let lease_until = match released.state {
            LeaseState::Held { until } => until,
            LeaseState::Lost(reason) => {
                state.on_lost(env, TurnId::of(lease.turn()), reason, closed_until);
                return None;
            }
            LeaseState::Released => return None,
        };
        let watch = state.watch();
        let release = state.on_release(env, lease.fence(), released.belief, closed_until, via);
        if let (Some(watch), None) = (watch, env.effects.ended) {
            // Inside the lock: the next lease of the turn is watched after this one.
            self.watches.vacate(watch);
        }
        let of = (lease.name(), lease.turn().mode());
        let release = Delivery::release(env.now, of, lease.metrics(), release?);
        // That of the lease, which `max_hold` may end before its turn.
        let overdue_at = env.now + self.timing.heartbeat_pause(lease.ttl());
        let belief = Some(Belief { until: lease_until, overdue_at });
        Cleanup::new(self, Delivery { belief, ..release })
    }

    /// Ends a lease on the server. Its turn has ended here.
    pub(crate) fn release_lost(&self, lease: &HeldLease, via: ReleaseVia) {
        let kind = DeliveryKind::Release(lease.turn().first());
        let release = Delivery::of_lease(self.clock.now(), lease, kind);
        let (closed_until, via) = (lease.closed_until(), Some(via));
        drop(Cleanup::new(self, Delivery { closed_until, via, ..release }));
    }

    /// Makes a command of the count of holds. It extends the lease, so there is none after a loss.
    pub(crate) fn make_hold(&self, lease: &Arc<HeldLease>, update: HoldUpdate) -> Option<Cleanup> {
        if lease.turn().mode() == Mode::Read {
            // A store keeps no holds of readers.
            return None;
        }
        let LeaseState::Held { until: expires } = lease.state() else { return None };
        let kind = DeliveryKind::Hold { lease: Arc::clone(lease), update };
        let hold = Delivery::of_lease(self.clock.now(), lease, kind);
        Cleanup::new(self, Delivery { expires, ..hold })
    }

    /// A turn is lost. Its lease is marked as lost already.
    pub(super) fn on_lost(&self, turn: &Grant, reason: LossReason, closed_until: Option<Instant>) {
        self.with(turn.name(), turn.mode(), |entry, env| {
            entry.state.on_lost(env, TurnId::of(turn), reason, closed_until);
        });
    }

    /// A turn was ended by force: its holder need not wait for a renewal to learn it.
    pub(super) fn on_force_released(&self, name: &LockName, id: AcquisitionId, first: Fence) {
        // Also while no task holds a lease of it: the task that is offered one is not to take it.
        let (mode, turn) = (self.mode_of(name, id), TurnId { id, first });
        self.with(name, mode, |entry, env| entry.state.on_force_released(env, turn));
    }

    /// Tokens of a name were granted at `at` or a little later, whether the grant counts or not.
    pub(crate) fn saw(&self, at: Instant, name: &LockName, granted: &Granted) {
        self.watermarks.saw(at, name, granted.last);
        self.report_regression(name, granted);
    }

    /// Reports a grant that shows that the server has lost data.
    pub(super) fn report_regression(&self, name: &LockName, granted: &Granted) {
        if granted.regressed {
            self.metrics.store().regression();
            self.outages().regressed(self.clock.now(), name, granted.first);
        }
    }

    /// Sends heartbeats, in one command.
    pub(super) async fn beat(self: Arc<Self>, mut beats: Vec<Beat>) {
        for Beat { waiter, sent_at } in &mut beats {
            waiter.watermark = waiter.watermark.max(self.watermarks.of(*sent_at, &waiter.name));
        }
        let batch = beats.iter().map(|beat| beat.waiter.clone()).collect();
        let timeout = |beat: &Beat| self.place_deadline(beat.waiter.ttl);
        let Some(shortest) = beats.iter().map(timeout).min() else { return };
        let now = self.clock.now();
        let heartbeats = Heartbeats { batch, label: self.label.clone() };
        let answers = self.store.ask(now, heartbeats, now + shortest).await;
        let answers = answers.unwrap_or_else(|error| vec![Err(error); beats.len()]);
        // Also where no task waits any more: the grant is taken back then.
        let metrics = self.metrics.class(&Class::default());
        for (Beat { waiter: Waiter { name, id, mode, .. }, sent_at }, result) in
            beats.iter().zip(answers)
        {
            if let Ok(AcquireAnswer::Granted(granted)) = &result {
                self.saw(*sent_at, name, granted);
            }
            let answer = TimedAnswer { sent_at: *sent_at, result };
            let reply = |entry: &mut NameEntry, env: &mut Env<'_>| {
                entry.state.on_reply(env, *id, answer);
            };
            self.with_new(name, *mode, &metrics, reply);
        }
    }

    /// Asks whether a grant is still there, before any task believes in it.
    async fn confirm(self: Arc<Self>, grant: Grant) {
        let sent_at = self.clock.now();
        let (name, Terms { ttl, acks, mode }) = (grant.name().clone(), grant.terms());
        let (id, fence) = (grant.id(), grant.first());
        let batch = vec![Renewal { name: name.clone(), id, fence, ttl, acks }];
        let deadline = sent_at + self.place_deadline(ttl);
        let answers = self.store.ask(sent_at, Renewals { batch }, deadline).await;
        let answer = TimedAnswer { sent_at, result: answers.and_then(only) };
        self.with(&name, mode, |entry, env| entry.state.on_confirmation(env, grant, answer));
    }

    /// No task gets a lease any more, once the present events are over.
    pub(super) fn close(&self) {
        self.names.close();
        for (name, mode) in self.names.names_of(|_| true) {
            self.with(&name, mode, |entry, env| entry.state.on_close(env));
        }
    }
}

/// Whether the server may still have a lease that was lost, and no other task ends it there.
fn worth_releasing(reason: LossReason) -> bool {
    // A shutdown has handed the release over itself, and a fork has nothing to give back.
    !matches!(
        reason,
        LossReason::Gone
            | LossReason::ForceReleased
            | LossReason::DataLost
            | LossReason::Overwritten
            | LossReason::Shutdown
            | LossReason::Forked
    )
}
