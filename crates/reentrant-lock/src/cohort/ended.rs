use std::task::Waker;

use leasehold_core::{
    AcquisitionId, FenceToken, Instant, StoreError, metric::WakeSource, store::ReleaseAnswer,
};

use super::{
    asked::Answer,
    beginning::told,
    effects::Effects,
    moment::Moment,
    phase::{Ending, Phase},
    place::Place,
    state::Cohort,
};

/// Whether a command is to be sent again.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Again {
    /// It was answered, or its answer does not matter any more.
    No,
    /// It was not answered.
    Yes,
}

impl Cohort {
    /// A release was answered with which the runtime ends a turn, and perhaps queues anew.
    pub(crate) fn ended(
        &mut self,
        m: &Moment<'_>,
        id: AcquisitionId,
        first: FenceToken,
        answer: Answer<ReleaseAnswer>,
    ) -> (Again, Effects) {
        let mut effects = Effects::default();
        match &mut self.phase {
            Phase::Ending(ending)
                if ending.turn.grant.id() == id && ending.turn.grant.first() == first =>
            {
                // It is sent again with what it was sent with: the next id does not change.
                if answer.result.as_ref().is_err_and(|error| error.kind().is_transient()) {
                    ending.repeated = true;
                    return (Again::Yes, effects);
                }
            }
            // The next turn has begun, by a push that came before the answer.
            _ => return (Again::No, effects),
        }
        let Phase::Ending(mut ending) = self.phase.take() else { return (Again::No, effects) };
        effects.wake_all = std::mem::take(&mut ending.watchers);
        let is_refused = answer.result.is_err();
        let repeats = ending.repeated && ending.next.is_none();
        // Where the lock could not be kept closed, only its ttl is to open it.
        if (ending.turn.unanswered.is_any() || repeats || is_refused)
            && !(is_refused && ending.stays_closed(m))
        {
            effects.withdraw.push((id, ending.turn.grant.ttl()));
        }
        match answer.result {
            Ok(answered) => self.follow(m, &ending, answer.sent_at, answered, &mut effects),
            Err(error) => self.refused(m, &ending, &error, &mut effects),
        }
        (Again::No, effects)
    }

    /// The runtime sees to the end of a turn, and needs no look at whether its holder does.
    pub(crate) fn drives_end(&mut self, id: AcquisitionId, first: FenceToken) {
        match &mut self.phase {
            Phase::Ending(ending)
                if ending.turn.grant.id() == id && ending.turn.grant.first() == first =>
            {
                ending.driven = true;
            }
            _ => {}
        }
    }

    /// The release is sent once more, before the copy before it was answered.
    pub(crate) fn repeats(&mut self, id: AcquisitionId, first: FenceToken) {
        if let Phase::Ending(ending) = &mut self.phase
            && ending.turn.grant.id() == id
            && ending.turn.grant.first() == first
        {
            ending.repeated = true;
        }
    }

    /// Whether the next copy of the release is to be sent now, because messages may have been lost;
    /// otherwise `waker` is woken when that is so.
    pub(crate) fn repeats_now(
        &mut self,
        id: AcquisitionId,
        first: FenceToken,
        waker: &Waker,
    ) -> bool {
        let is_this = self.is_ending(id, first);
        let Phase::Ending(ending) = &mut self.phase else { return false };
        if !is_this {
            return false;
        }
        ending.gap.is_due(waker)
    }

    /// Whether no release is on its way any more. Otherwise a task that tries the lock after it is
    /// woken by then, and at `until` at the latest.
    pub(crate) fn settles(&mut self, waker: &Waker, until: Instant) -> bool {
        match &mut self.phase {
            Phase::Ending(ending) if self.queue.is_empty() => {
                let first = ending.watched_until.map_or(until, |known| known.min(until));
                ending.watched_until = Some(first);
                if !ending.watchers.iter().any(|known| known.will_wake(waker)) {
                    ending.watchers.push(waker.clone());
                }
                false
            }
            _ => true,
        }
    }

    /// The release was not answered for so long that the server has forgotten the lease by itself.
    pub(crate) fn gave_up_ending(
        &mut self,
        m: &Moment<'_>,
        id: AcquisitionId,
        first: FenceToken,
    ) -> Effects {
        let mut effects = Effects::default();
        match &self.phase {
            Phase::Ending(ending)
                if ending.turn.grant.id() == id && ending.turn.grant.first() == first => {}
            _ => return effects,
        }
        let Phase::Ending(mut ending) = self.phase.take() else { return effects };
        effects.wake_all = std::mem::take(&mut ending.watchers);
        if !ending.stays_closed(m) {
            effects.withdraw.push((id, ending.turn.grant.ttl()));
        }
        if ending.next.is_none() {
            // Nobody knows that the lock is free: that can wait for the next round.
            self.ask_anew(m);
            return effects;
        }
        let sent_at = ending.turn.until;
        self.follow(m, &ending, sent_at, ReleaseAnswer::Gone, &mut effects);
        effects
    }

    /// Goes on after a release that the store refused for good.
    fn refused(
        &mut self,
        m: &Moment<'_>,
        ending: &Ending,
        error: &StoreError,
        effects: &mut Effects,
    ) {
        match ending.next {
            // Whoever came later asks for itself.
            None => self.ask_anew(m),
            Some(next) => {
                if ending.repeated {
                    // A copy before this one may have queued it.
                    effects.withdraw.push((next.id, next.ttl));
                }
                self.fail(error, effects);
            }
        }
    }

    /// Goes on after the end of a turn.
    fn follow(
        &mut self,
        m: &Moment<'_>,
        ending: &Ending,
        sent_at: Instant,
        answer: ReleaseAnswer,
        effects: &mut Effects,
    ) {
        let Some(next) = ending.next else { return self.ask_at_once(m, effects) };
        if self.queue.is_empty() {
            // Everybody left while the release was on its way.
            if answer != ReleaseAnswer::Released {
                effects.withdraw.push((next.id, next.ttl));
            }
            return;
        }
        let mut place = Place::wanted(m, next.id, next.ttl)
            .with_sent(next.heartbeat.number, next.sent_at)
            .uncertain(ending.repeated);
        place.asks_soon = ending.gap.asks_at;
        match answer {
            ReleaseAnswer::NextGranted(granted) => {
                let grant = told(m, next.id, next.ttl, sent_at, &granted);
                self.phase = Phase::Place(Box::new(place));
                self.consider(m, grant, granted.contended, WakeSource::Heartbeat, effects);
            }
            ReleaseAnswer::NextQueued(queued) => {
                place.told(m, sent_at, queued);
                if ending.repeated {
                    // A repeat tells of the place, and does not keep it: a heartbeat does.
                    place.ask_at(m.now);
                }
                self.phase = Phase::Place(Box::new(place));
            }
            ReleaseAnswer::Gone => self.phase = Phase::Place(Box::new(place)),
            ReleaseAnswer::Released | ReleaseAnswer::Kept { .. } => self.ask_at_once(m, effects),
        }
    }
}
