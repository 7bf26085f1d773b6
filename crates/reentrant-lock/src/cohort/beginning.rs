use leasehold_core::{
    AcquisitionId, FenceToken, Instant, StoreError, Ttl, lease::Grant, metric::WakeSource,
    store::Granted,
};

use super::{
    block::Block,
    effects::{Effects, End, Send},
    moment::Moment,
    phase::Phase,
    state::Cohort,
    turn::{Offer, Turn},
    unanswered::Unanswered,
};

impl Cohort {
    /// The turn begins, if the grant is news; the first task in order is offered the first token.
    pub(super) fn begin(
        &mut self,
        m: &Moment<'_>,
        grant: Grant,
        contended: bool,
        source: Option<WakeSource>,
        effects: &mut Effects,
    ) {
        if !(m.rules.is_news)(grant.first(), self.begun) {
            if let Phase::Place(place) = &mut self.phase {
                place.ask_at(m.next_heartbeat(m.now, place.ttl));
            }
            return;
        }
        let Some((ticket, ttl)) = self.queue.first() else {
            return self.orphan(m, grant.id(), grant.first(), effects);
        };
        let mut block = Block::of(&grant);
        let Some(token) = block.spend(&grant) else { return };
        let mut unanswered = Unanswered::default();
        match self.phase.take() {
            Phase::Place(place) => unanswered = place.unanswered.kept(m),
            // A push came before the answer.
            Phase::Asking(_) => unanswered = Unanswered::one().kept(m),
            // The release that queued it may have been sent more than once.
            Phase::Ending(ending) => {
                if ending.turn.unanswered.is_any() {
                    effects.withdraw.push((ending.turn.grant.id(), ending.turn.grant.ttl()));
                }
                unanswered.lose(ending.repeated);
                effects.wake_all.extend(ending.watchers);
            }
            _ => {}
        }
        self.begun = Some(grant.first());
        let offer = Offer { ticket, token, at: m.now, source };
        let fits = grant.remaining(m.now) <= ttl.get();
        let grant = if fits { grant.for_ttl(ttl) } else { grant };
        let mut turn = Turn::new(grant, contended, self.queue.len() - 1, block, offer);
        turn.unanswered = unanswered;
        let wants_another = turn.grant.ttl() != ttl;
        self.phase = Phase::Turn(turn);
        if wants_another {
            // The task for whose ttl it was asked is gone.
            self.end(m, None, effects);
        } else {
            effects.wake = self.queue.waker(ticket);
        }
    }

    /// A grant that no task waits for: it is taken back by its id, whatever grant that has by now.
    pub(super) fn orphan(
        &mut self,
        m: &Moment<'_>,
        id: AcquisitionId,
        first: FenceToken,
        effects: &mut Effects,
    ) {
        let known = match &self.phase {
            // A grant that is no longer live is let go, and costs nobody a place.
            Phase::Place(place) => place.id == id,
            Phase::Asking(asking) => asking.id == id,
            Phase::Turn(turn) => turn.grant.id() == id,
            Phase::Ending(ending) => {
                ending.turn.grant.id() == id || ending.next.is_some_and(|next| next.id == id)
            }
            Phase::Idle => false,
        };
        if known {
            return;
        }
        if (m.rules.withdraws_orphans)() {
            effects.withdraw.push((id, m.timing.ttl));
        } else {
            effects.send = Some(Send::End(End {
                id,
                first,
                ttl: m.timing.ttl,
                until: m.now + m.timing.ttl.get(),
                next: None,
                closed_until: None,
                via: None,
            }));
        }
    }

    /// No wait comes to anything.
    pub(super) fn fail(&mut self, error: &StoreError, effects: &mut Effects) {
        self.phase = Phase::Idle;
        effects.wake_all.extend(self.queue.fail(error));
    }
}

/// A grant as an answer or a push tells it.
pub(super) fn told(
    m: &Moment<'_>,
    id: AcquisitionId,
    ttl: Ttl,
    counts_from: Instant,
    granted: &Granted,
) -> Grant {
    Grant::told(m.name, id, ttl, (m.rules.answer_counts_from)(counts_from, m.now), granted)
}
