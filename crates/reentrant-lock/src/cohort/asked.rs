use leasehold_core::{Instant, StoreError, StoreErrorKind, store::AcquireAnswer};

use super::{
    beginning::told, effects::Effects, moment::Moment, phase::Phase, place::Place, queue::Ticket,
    state::Cohort, tasks::Taken,
};

/// What the first task makes of the answer to its own command.
#[derive(Debug)]
pub(crate) enum Asked {
    /// The lock is its.
    Taken(Taken),
    /// Somebody else has it, and it did not want to wait.
    Busy,
    /// It waits on; the runtime asks from now on.
    Waits,
    /// The store failed.
    Failed(StoreError),
}

/// A command that was answered: when it was sent, and what came back.
#[derive(Debug)]
pub(crate) struct Answer<T> {
    pub(crate) sent_at: Instant,
    pub(crate) result: Result<T, StoreError>,
}

impl Cohort {
    /// The first task's own command was answered.
    pub(crate) fn asked(
        &mut self,
        m: &Moment<'_>,
        lead: Ticket,
        tries: bool,
        answer: Answer<AcquireAnswer>,
    ) -> (Asked, Effects) {
        let mut effects = Effects::default();
        let asking = match self.phase.take() {
            Phase::Asking(asking) if asking.lead == lead => asking,
            // A push came first, or the runtime keeps the place by now, or went on without its task.
            other => {
                self.phase = other;
                return self.asked_late(m, lead, tries, answer);
            }
        };
        let (id, mut place) = (asking.id, Place::asked_for(m, &asking));
        match answer.result {
            Ok(AcquireAnswer::Granted(granted)) => {
                let grant = told(m, id, asking.ttl, answer.sent_at, &granted);
                if grant.remaining(m.now).is_zero() {
                    return self.too_late(m, place, tries, lead, effects);
                }
                self.phase = Phase::Place(Box::new(place));
                self.begin(m, grant, granted.contended, None, &mut effects);
                if let Some(taken) = self.take_asked(m, lead, &mut effects) {
                    return (taken, effects);
                }
                if tries {
                    // A grant that was ended by force while its answer was on its way.
                    effects.add(self.leave(m, lead));
                    return (Asked::Failed(super::too_late()), effects);
                }
                (Asked::Waits, effects)
            }
            Ok(AcquireAnswer::Busy { .. } | AcquireAnswer::Queued(_)) if tries => {
                self.queue.leave(lead);
                self.ask_again_as(place);
                (Asked::Busy, effects)
            }
            Ok(AcquireAnswer::Queued(queued)) => {
                place.told(m, answer.sent_at, queued);
                self.phase = Phase::Place(Box::new(place));
                (Asked::Waits, effects)
            }
            Ok(AcquireAnswer::Withdrawn) if tries => {
                self.queue.leave(lead);
                self.ask_anew(m);
                (Asked::Failed(super::too_late()), effects)
            }
            Ok(AcquireAnswer::Busy { .. } | AcquireAnswer::Withdrawn) => {
                self.ask_anew(m);
                (Asked::Waits, effects)
            }
            Err(error) if !error.kind().is_transient() => {
                self.queue.leave(lead);
                self.fail(&error, &mut effects);
                (Asked::Failed(error), effects)
            }
            Err(error) if tries => {
                self.queue.leave(lead);
                if error.kind() == StoreErrorKind::Indeterminate {
                    effects.withdraw.push((id, asking.ttl));
                    self.ask_anew(m);
                } else {
                    self.ask_again_as(place);
                }
                (Asked::Failed(error), effects)
            }
            Err(error) => {
                let mut place = place.uncertain(error.kind() == StoreErrorKind::Indeterminate);
                place.failed(m, error);
                self.phase = Phase::Place(Box::new(place));
                (Asked::Waits, effects)
            }
        }
    }

    /// The first task's own command was answered when the runtime had gone on: that counts as the
    /// answer to a heartbeat.
    fn asked_late(
        &mut self,
        m: &Moment<'_>,
        lead: Ticket,
        tries: bool,
        answer: Answer<AcquireAnswer>,
    ) -> (Asked, Effects) {
        let id = m.numbers.known(lead);
        let instead = match &answer.result {
            _ if !tries => Asked::Waits,
            Ok(AcquireAnswer::Busy { .. }) => Asked::Busy,
            Ok(_) => Asked::Failed(super::too_late()),
            Err(error) => Asked::Failed(error.clone()),
        };
        let mut effects = match &mut self.phase {
            // One that only tried was refused; the place is that of those who wait behind it.
            Phase::Place(place) if place.id == id && matches!(instead, Asked::Busy) => {
                place.unanswered.answered(&answer.result);
                Effects::default()
            }
            _ => self.heard(m, id, answer),
        };
        if let Some(error) = self.queue.failure(lead) {
            return (Asked::Failed(error), effects);
        }
        if let Some(taken) = self.take_asked(m, lead, &mut effects) {
            return (taken, effects);
        }
        if tries {
            let left = self.leave(m, lead);
            effects.add(left);
        }
        (instead, effects)
    }

    /// The first task takes the token that it was just offered; it need not be woken for that.
    fn take_asked(&mut self, m: &Moment<'_>, lead: Ticket, effects: &mut Effects) -> Option<Asked> {
        let taken = self.take(m, lead, effects)?;
        effects.wake.take().into_iter().for_each(|waker| self.queue.discard(waker));
        Some(Asked::Taken(taken))
    }

    /// A grant came too late to be believed: it is asked for again, or given up by who only tried.
    fn too_late(
        &mut self,
        m: &Moment<'_>,
        place: Place,
        tries: bool,
        lead: Ticket,
        mut effects: Effects,
    ) -> (Asked, Effects) {
        if !tries {
            self.phase = Phase::Place(Box::new(place));
            return (Asked::Waits, effects);
        }
        self.queue.leave(lead);
        effects.withdraw.push((place.id, place.ttl));
        self.ask_anew(m);
        (Asked::Failed(super::too_late()), effects)
    }

    /// Whoever waits goes on asking under the same id.
    fn ask_again_as(&mut self, place: Place) {
        if !self.queue.is_empty() {
            self.phase = Phase::Place(Box::new(place));
        }
    }
}
