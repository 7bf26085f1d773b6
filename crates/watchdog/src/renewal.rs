use std::sync::Arc;

use leasehold_core::{
    Instant, StoreError, StoreErrorKind, Terms,
    lease::{Grant, LossReason},
    metric::RenewalOutcome,
    outage::WatchedStore,
    store::{RenewAnswer, Renewal, Renewals},
};

use crate::{
    Key,
    batch::{Attempt, RenewalBatch},
    lease::HeldLease,
    watches::{Watch, Watches},
};

impl RenewalBatch {
    pub(crate) async fn renew(
        self,
        store: Arc<WatchedStore>,
        watches: Arc<Watches>,
    ) -> AnsweredBatch {
        let batch = self.turns.iter().map(|(_, turn)| renewal(turn)).collect();
        let sent_at = watches.clock().now();
        let mut unanswered = UnansweredBatch { watches, turns: self.turns };
        let answers = store.ask(sent_at, Renewals { batch }, sent_at + self.patience).await;
        AnsweredBatch { turns: std::mem::take(&mut unanswered.turns), sent_at, answers }
    }
}

fn renewal(turn: &Grant) -> Renewal {
    let Terms { ttl, acks } = turn.terms();
    Renewal { name: turn.name().clone(), id: turn.id(), fence: turn.first(), ttl, acks }
}

/// Renewals without an answer: if the store panics, they are unconfirmed and tried again.
#[derive(Debug)]
struct UnansweredBatch {
    watches: Arc<Watches>,
    turns: Vec<(Key, Arc<Grant>)>,
}

impl Drop for UnansweredBatch {
    fn drop(&mut self) {
        for (key, _) in &self.turns {
            if let Some(lease) = self.watches.holder(Watch(*key)) {
                lease.metrics().renewal(RenewalOutcome::Unknown);
            }
        }
        let now = self.watches.clock().now();
        let attempts = self.turns.iter().map(|(key, _)| (*key, Attempt::Unconfirmed));
        self.watches.answered(now, attempts);
    }
}

#[derive(Debug)]
pub(crate) struct AnsweredBatch {
    pub(crate) turns: Vec<(Key, Arc<Grant>)>,
    pub(crate) sent_at: Instant,
    pub(crate) answers: Result<Vec<Result<RenewAnswer, StoreError>>, StoreError>,
}

impl AnsweredBatch {
    /// Applies the answers, and returns the turns that are lost, and why.
    pub(crate) fn apply(self, now: Instant, watches: &Watches) -> Vec<(Arc<Grant>, LossReason)> {
        let Self { turns, sent_at, answers } = self;
        let (mut answers, kind) = match answers {
            Ok(answers) => (answers.into_iter(), StoreErrorKind::Indeterminate),
            Err(error) => (Vec::new().into_iter(), error.kind()),
        };
        let (mut lost, mut attempts) = (Vec::new(), Vec::with_capacity(turns.len()));
        for (key, _) in turns {
            let lease = watches.holder(Watch(key));
            let answer = answers.next().map_or(Err(kind), |one| one.map_err(|error| error.kind()));
            // The answer is about the turn, so it counts for the lease that is held by now.
            match apply_one(lease.as_deref(), now, sent_at, &answer) {
                Ok(attempt) => attempts.push((key, attempt)),
                Err(reason) => lost.push((key, reason)),
            }
        }
        watches.answered(now, attempts.into_iter());
        // A lease of the turn that was taken meanwhile is lost too.
        let turn_of = |(key, reason)| Some((watches.remove(key)?.lose(reason), reason));
        lost.into_iter().filter_map(turn_of).collect()
    }
}

/// Applies one answer; it fails if there is nothing left to renew.
fn apply_one(
    lease: Option<&HeldLease>,
    now: Instant,
    sent_at: Instant,
    answer: &Result<RenewAnswer, StoreErrorKind>,
) -> Result<Attempt, LossReason> {
    let (outcome, attempt) = match answer {
        Ok(RenewAnswer::Renewed { remaining }) => match lease {
            Some(lease) if lease.renewed(now, sent_at, *remaining) => {
                (RenewalOutcome::Renewed, Ok(Attempt::Confirmed))
            }
            Some(_) => (RenewalOutcome::Lost, Ok(Attempt::Unconfirmed)),
            // The next lease of the turn does not know of this renewal: renew again.
            None => (RenewalOutcome::Renewed, Ok(Attempt::Unconfirmed)),
        },
        Ok(RenewAnswer::Gone) => (RenewalOutcome::Lost, Err(LossReason::Gone)),
        Ok(RenewAnswer::DataLost) => (RenewalOutcome::Lost, Err(LossReason::DataLost)),
        Ok(RenewAnswer::Corrupt) => (RenewalOutcome::Lost, Err(LossReason::Overwritten)),
        // An error is not a loss: the lease stands until its deadline.
        Err(StoreErrorKind::Indeterminate) => (RenewalOutcome::Unknown, Ok(Attempt::Unconfirmed)),
        Err(_) => (RenewalOutcome::Held, Ok(Attempt::Unconfirmed)),
    };
    if let Some(lease) = lease {
        if let Err(reason) = attempt {
            let _ = lease.lose(reason);
        }
        lease.metrics().renewal(outcome);
    }
    attempt
}
