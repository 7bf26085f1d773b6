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
        let (id, asking) = match self.phase.take() {
            Phase::Asking(asking) if asking.lead == lead => (asking.id, asking),
            // A push came first, or nobody looked for so long that the runtime went on without it.
            other => {
                self.phase = other;
                let asked = if tries { Asked::Failed(super::too_late()) } else { Asked::Waits };
                return (asked, effects);
            }
        };
        let mut place = Place::wanted(m, id, asking.ttl);
        if let Some(number) = asking.heartbeat {
            place = place.with_sent(number, asking.sent_at);
        }
        match answer.result {
            Ok(AcquireAnswer::Granted(granted)) => {
                let grant = told(m, id, asking.ttl, answer.sent_at, &granted);
                if grant.remaining(m.now).is_zero() {
                    return self.too_late(m, place, tries, lead, effects);
                }
                self.phase = Phase::Place(Box::new(place));
                self.begin(m, grant, granted.contended, None, &mut effects);
                let taken = self.take(m, lead, &mut effects);
                (taken.map_or(Asked::Waits, Asked::Taken), effects)
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
