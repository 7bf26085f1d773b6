use std::time::Duration;

use leasehold_core::{
    AcquisitionId, Instant,
    lease::Grant,
    metric::WakeSource,
    store::{AcquireAnswer, Granted, RenewAnswer},
};

use crate::seam::PushTimes;

use super::{
    asked::Answer,
    beginning::told,
    effects::{Effects, Send},
    moment::Moment,
    phase::Phase,
    state::Cohort,
};

/// With less belief left than this a grant is confirmed before anybody enters.
const LITTLE: Duration = Duration::from_millis(500);

impl Cohort {
    /// A heartbeat was answered.
    pub(crate) fn heard(
        &mut self,
        m: &Moment<'_>,
        id: AcquisitionId,
        answer: Answer<AcquireAnswer>,
    ) -> Effects {
        let mut effects = Effects::default();
        let place = match &mut self.phase {
            Phase::Place(place) if place.id == id => place,
            Phase::Turn(turn) if turn.grant.id() == id => {
                if (m.rules.remembers_unanswered)() {
                    turn.unanswered.answered(&answer.result);
                }
                let (ttl, first) = (turn.grant.ttl(), turn.grant.first());
                match &answer.result {
                    // A push told of the grant before, and then it is no news any more.
                    Ok(AcquireAnswer::Granted(granted)) if granted.first == first => {
                        let grant = told(m, id, ttl, answer.sent_at, granted);
                        let source = WakeSource::Heartbeat;
                        self.consider(m, grant, granted.contended, source, &mut effects);
                    }
                    // The store has lost its data and, by a late copy, granted the lock to this id
                    // once more: an id that had a lease is dead. An older grant ran out before.
                    Ok(AcquireAnswer::Granted(granted)) if granted.first > first => {
                        effects.withdraw.push((id, ttl));
                    }
                    _ => {}
                }
                return effects;
            }
            Phase::Ending(ending) if ending.turn.grant.id() == id => {
                if (m.rules.remembers_unanswered)() {
                    ending.turn.unanswered.answered(&answer.result);
                }
                return effects;
            }
            _ => {
                if let Ok(AcquireAnswer::Granted(granted)) = &answer.result {
                    self.orphan(m, id, granted.first, &mut effects);
                }
                return effects;
            }
        };
        place.unanswered.answered(&answer.result);
        match answer.result {
            Ok(AcquireAnswer::Granted(granted)) => {
                let grant = told(m, id, place.ttl, answer.sent_at, &granted);
                self.consider(m, grant, granted.contended, WakeSource::Heartbeat, &mut effects);
            }
            Ok(AcquireAnswer::Queued(queued)) => place.told(m, answer.sent_at, queued),
            Ok(AcquireAnswer::Busy { .. } | AcquireAnswer::Withdrawn) => self.ask_anew(m),
            Err(error) if error.kind().is_transient() => place.failed(m, error),
            Err(error) => {
                // A command before this one may have queued it: it is not left to lapse.
                effects.withdraw.push((id, place.ttl));
                self.fail(&error, &mut effects);
            }
        }
        effects
    }

    /// A grant was pushed, that names the last heartbeat which the store had heard.
    pub(crate) fn pushed(
        &mut self,
        m: &Moment<'_>,
        id: AcquisitionId,
        granted: &Granted,
        number: u64,
    ) -> Effects {
        let mut effects = Effects::default();
        let found = match &self.phase {
            Phase::Place(place) if place.id == id => {
                Some((place.ttl, place.sent_at(number), place.answered))
            }
            Phase::Asking(asking) if asking.id == id => {
                let sent_at = (asking.heartbeat == Some(number)).then_some(asking.sent_at);
                Some((asking.ttl, sent_at, Instant::default()))
            }
            Phase::Ending(ending) => ending.next.filter(|next| next.id == id).map(|next| {
                let sent_at = (next.heartbeat.number == number).then_some(next.sent_at);
                (next.ttl, sent_at, Instant::default())
            }),
            _ => None,
        };
        let Some((ttl, sent_at, answered_sent_at)) = found else {
            self.orphan(m, id, granted.first, &mut effects);
            return effects;
        };
        let times = PushTimes {
            // One that is forgotten was sent long ago.
            heartbeat_sent_at: sent_at.unwrap_or_default(),
            answered_sent_at,
            arrived_at: m.now,
        };
        let grant = told(m, id, ttl, (m.rules.push_counts_from)(&times), granted);
        self.consider(m, grant, granted.contended, WakeSource::Push, &mut effects);
        effects
    }

    /// Begins a turn with a grant of the present acquisition, if it is news and can be believed.
    pub(super) fn consider(
        &mut self,
        m: &Moment<'_>,
        grant: Grant,
        contended: bool,
        source: WakeSource,
        effects: &mut Effects,
    ) {
        let enough = m.claim_window(grant.ttl()) / 4;
        let is_news = (m.rules.is_news)(grant.first(), self.begun);
        if !is_news || grant.remaining(m.now) >= enough.min(LITTLE) {
            return self.begin(m, grant, contended, Some(source), effects);
        }
        // Too little is left: one renewal says whether the grant is still there.
        self.keep_place(m);
        if let Phase::Place(place) = &mut self.phase
            && place.confirming.is_none()
        {
            place.confirming = Some(grant.clone());
            effects.send = Some(Send::Confirm(grant));
        }
    }

    /// A renewal that was to confirm a grant was answered.
    pub(crate) fn confirmed(
        &mut self,
        m: &Moment<'_>,
        grant: Grant,
        answer: Answer<RenewAnswer>,
    ) -> Effects {
        let mut effects = Effects::default();
        let place = match &mut self.phase {
            Phase::Place(place) if place.id == grant.id() => place,
            _ => {
                self.orphan(m, grant.id(), grant.first(), &mut effects);
                return effects;
            }
        };
        if place.confirming.take().is_none() {
            return effects;
        }
        place.ask_at(m.now);
        match answer.result {
            Ok(RenewAnswer::Renewed { remaining }) => {
                let grant = grant.renewed(answer.sent_at, remaining);
                if !grant.remaining(m.now).is_zero() {
                    // Whether others wait is not told; they do more often than not.
                    self.begin(m, grant, true, Some(WakeSource::Push), &mut effects);
                }
            }
            // That ends the grant, not the acquisition, which keeps its place: it asks again.
            Ok(RenewAnswer::Gone | RenewAnswer::Corrupt) if (m.rules.outlives_gone_push)() => {}
            Ok(RenewAnswer::Gone | RenewAnswer::Corrupt) => self.ask_anew(m),
            Err(error) => place.failed(m, error),
        }
        effects
    }
}
