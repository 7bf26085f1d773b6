use leasehold_core::{
    AcquisitionId, Instant, StoreError, Terms,
    lease::Grant,
    metric::WakeSource,
    store::{AcquireAnswer, Granted, RenewAnswer},
};

use crate::timing::Timing;

use super::{
    Answer,
    phase::Phase,
    state::{Cohort, Env, Outgoing},
};

impl Cohort {
    pub(crate) fn on_reply(
        &mut self,
        env: &mut Env<'_>,
        id: AcquisitionId,
        answer: Answer<AcquireAnswer>,
    ) {
        let place = match &mut self.phase {
            Phase::Place(place) if place.id == id => place,
            Phase::Turn(turn) if turn.grant.id() == id => {
                turn.unanswered.on_reply(&answer.result);
                // After data loss a late copy may get a second grant for this id, which has one
                // lease only. An older grant ran out before, and the present one came by a push.
                if let Ok(AcquireAnswer::Granted(granted)) = &answer.result
                    && granted.first > turn.grant.first()
                {
                    env.effects.withdraw.push((id, turn.grant.ttl()));
                }
                return;
            }
            Phase::Releasing(releasing) if releasing.turn.grant.id() == id => {
                return releasing.turn.unanswered.on_reply(&answer.result);
            }
            _ => {
                match &answer.result {
                    Ok(AcquireAnswer::Granted(_)) => self.orphan(env, id),
                    Err(error) if error.is_unacknowledged() => self.orphan(env, id),
                    _ => {}
                }
                return;
            }
        };
        place.unanswered.on_reply(&answer.result);
        match answer.result {
            Ok(AcquireAnswer::Granted(granted)) => {
                place.on_answer();
                let grant = Grant::from_answer(env.name, id, place.terms, answer.sent_at, &granted);
                self.consider(env, grant, granted.contended, WakeSource::Heartbeat);
            }
            Ok(AcquireAnswer::Queued(position)) => {
                place.on_not_yet(env, answer.sent_at, position);
            }
            Ok(AcquireAnswer::Busy { .. } | AcquireAnswer::Withdrawn) => self.ask_anew(env),
            Err(error) if error.is_unacknowledged() => {
                self.take_back(env, answer.sent_at, error);
            }
            Err(error) if error.kind().is_transient() => {
                place.on_failure(env, answer.sent_at, error);
            }
            Err(error) => {
                // It is not left to lapse.
                if place.may_be_queued() {
                    env.effects.withdraw.push((id, place.terms.ttl));
                }
                self.fail(env, &error);
            }
        }
    }

    /// The store pushed a grant, which names the last heartbeat that the store had heard.
    pub(crate) fn on_grant(
        &mut self,
        env: &mut Env<'_>,
        id: AcquisitionId,
        granted: &Granted,
        number: u64,
    ) {
        let Some((terms, sent_at)) = self.awaited(id, number) else {
            return self.orphan(env, id);
        };
        // Unknown heartbeat: nothing of the grant is believed, so it is confirmed first.
        let counts_from = (env.rules.push_counts_from)(sent_at.unwrap_or_default(), env.now);
        let grant = Grant::from_answer(env.name, id, terms, counts_from, granted);
        self.consider(env, grant, granted.contended, WakeSource::Push);
    }

    /// Whether a push of a grant for this acquisition is awaited.
    pub(crate) fn awaits(&self, id: AcquisitionId) -> bool {
        self.awaited(id, 0).is_some()
    }

    /// The terms of an acquisition that a push may grant, and when the heartbeat with this number was
    /// sent.
    fn awaited(&self, id: AcquisitionId, number: u64) -> Option<(Terms, Option<Instant>)> {
        match &self.phase {
            Phase::Place(place) if place.id == id => Some((place.terms, place.sent_at(number))),
            Phase::Asking(asking) if asking.id == id => {
                let sent_at = (asking.heartbeat == Some(number)).then_some(asking.sent_at);
                Some((asking.terms, sent_at))
            }
            Phase::Releasing(releasing) => {
                releasing.next.filter(|next| next.id == id).map(|next| {
                    let sent_at = (next.heartbeat.number == number).then_some(next.sent_at);
                    (next.terms, sent_at)
                })
            }
            _ => None,
        }
    }

    /// Begins a turn with a grant of the present acquisition, if it is news and can be believed. A
    /// grant that needs acknowledgements, and did not wait for them, is confirmed by a renewal that
    /// does.
    // ADR 0006
    pub(super) fn consider(
        &mut self,
        env: &mut Env<'_>,
        grant: Grant,
        contended: bool,
        source: WakeSource,
    ) {
        let is_news = (env.rules.is_news)(grant.first(), self.begun);
        let is_enough = grant.remaining(env.now) >= env.timing.enough(grant.ttl());
        if !is_news || is_enough && !(env.rules.needs_acks)(grant.terms().acks) {
            return self.begin(env, grant, contended, Some(source));
        }
        // Otherwise one renewal says whether the grant is still there, and who has it.
        self.keep_place(env);
        if let Phase::Place(place) = &mut self.phase
            && place.confirming.replace(grant.first()) != Some(grant.first())
        {
            env.effects.send = Some(Outgoing::Confirm(Box::new(grant)));
        } else if let Phase::Releasing(releasing) = &mut self.phase {
            // The answer to the release, or to its next copy, tells of the grant once more.
            releasing.asks_soon.get_or_insert(env.now + Timing::SHORTEST_PAUSE);
        }
    }

    pub(crate) fn on_confirmation(
        &mut self,
        env: &mut Env<'_>,
        grant: Grant,
        answer: Answer<RenewAnswer>,
    ) {
        let place = match &mut self.phase {
            Phase::Place(place) if place.id == grant.id() => place,
            _ => return self.orphan(env, grant.id()),
        };
        if place.confirming.take().is_none() {
            return;
        }
        place.ask_at(env.now);
        match answer.result {
            Ok(RenewAnswer::Renewed { remaining }) => {
                let grant = grant.renewed(answer.sent_at, remaining);
                if !grant.remaining(env.now).is_zero() {
                    // The answer does not say whether others wait; mostly they do.
                    self.begin(env, grant, true, Some(WakeSource::Push));
                }
            }
            // That ends the grant, not the acquisition, which keeps its place: it asks again.
            Ok(RenewAnswer::Gone | RenewAnswer::DataLost | RenewAnswer::Corrupt) => {}
            Err(error) if error.is_unacknowledged() => {
                self.take_back(env, answer.sent_at, error);
            }
            Err(error) => place.on_failure(env, answer.sent_at, error),
        }
    }

    /// Too few replicas have the grant: it is withdrawn, and the runtime asks under a fresh id after
    /// a pause. Meanwhile others may have the lock. If the server cannot wait for replicas at all,
    /// waiting does not help.
    fn take_back(&mut self, env: &mut Env<'_>, sent_at: Instant, error: StoreError) {
        let Phase::Place(mut old) = std::mem::take(&mut self.phase) else { return };
        env.effects.withdraw.push((old.id, old.terms.ttl));
        if !error.kind().is_transient() {
            return self.fail(env, &error);
        }
        self.ask_anew(env);
        if let Phase::Place(place) = &mut self.phase {
            place.follow(env, &mut old, sent_at, error);
        }
    }

    /// Withdraws the id of a grant that is neither the present nor the next one of this runtime.
    pub(super) fn orphan(&mut self, env: &mut Env<'_>, id: AcquisitionId) {
        let known = match &self.phase {
            // A grant that is no longer live is ignored, and costs no task its place.
            Phase::Place(place) => place.id == id,
            Phase::Asking(asking) => asking.id == id,
            Phase::Turn(turn) => turn.grant.id() == id,
            Phase::Releasing(releasing) => {
                releasing.turn.grant.id() == id || releasing.next.is_some_and(|next| next.id == id)
            }
            Phase::Idle => false,
        };
        let is_withdrawn = self.opening.as_ref().is_some_and(|opening| opening.withdraws(id));
        if !known && !is_withdrawn {
            env.effects.withdraw.push((id, env.timing.ttl));
        }
    }

    /// Waiting does not help any task here.
    pub(super) fn fail(&mut self, env: &mut Env<'_>, error: &StoreError) {
        self.phase = Phase::Idle;
        env.effects.wake.extend(self.queue.fail(error));
    }
}
