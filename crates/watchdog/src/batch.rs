use std::sync::Arc;

use leasehold_core::{
    Instant, LockStore, StoreError, StoreErrorKind, Ttl,
    lease::{Grant, LossReason},
    metric::RenewalOutcome,
    store::{RenewAnswer, Renewal},
};

use crate::{lease::HeldLease, plan::Attempt, watchlist::Watchlist};

/// Turns of one ttl whose renewals travel in one command.
#[derive(Debug)]
pub(crate) struct Batch {
    ttl: Ttl,
    turns: Vec<(u64, Arc<Grant>)>,
}

impl Batch {
    /// The most turns of one command.
    const MAX: usize = 128;

    /// Adds a turn to the last batch of its ttl, or begins a new one.
    pub(crate) fn collect(batches: &mut Vec<Self>, key: u64, turn: &Arc<Grant>) {
        let (ttl, turn) = (turn.ttl(), (key, Arc::clone(turn)));
        let open = batches.iter_mut().rev().find(|batch| batch.ttl == ttl);
        match open.filter(|batch| batch.turns.len() < Self::MAX) {
            Some(batch) => batch.turns.push(turn),
            None => batches.push(Self { ttl, turns: vec![turn] }),
        }
    }

    /// Renews the turns; the command has a sixth of their ttl.
    pub(crate) async fn renew(
        self,
        store: Arc<dyn LockStore>,
        watchlist: Arc<Watchlist>,
    ) -> Renewed {
        let renewals: Vec<Renewal> = self.turns.iter().map(|(_, turn)| renewal(turn)).collect();
        let sent_at = watchlist.clock().now();
        let mut unsettled = Unsettled { watchlist, sent_at, turns: self.turns };
        let answers = store.renew(&renewals, sent_at + self.ttl.get() / 6).await;
        Renewed { turns: std::mem::take(&mut unsettled.turns), sent_at, answers }
    }
}

fn renewal(turn: &Grant) -> Renewal {
    Renewal { name: turn.name().clone(), id: turn.id(), fence: turn.first(), ttl: turn.ttl() }
}

/// Renewals on their way: a store that panics leaves them unconfirmed, to be tried again.
#[derive(Debug)]
struct Unsettled {
    watchlist: Arc<Watchlist>,
    sent_at: Instant,
    turns: Vec<(u64, Arc<Grant>)>,
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        for (key, _) in &self.turns {
            if let Some(lease) = self.watchlist.holder(*key) {
                lease.metrics().renewal(RenewalOutcome::Unknown);
            }
            self.watchlist.answered(*key, self.sent_at, Attempt::Unconfirmed);
        }
    }
}

/// What came of a batch.
#[derive(Debug)]
pub(crate) struct Renewed {
    turns: Vec<(u64, Arc<Grant>)>,
    pub(crate) sent_at: Instant,
    pub(crate) answers: Result<Vec<RenewAnswer>, StoreError>,
}

impl Renewed {
    /// Tells every turn its answer; yields the turns that are lost.
    pub(crate) fn settle(self, watchlist: &Watchlist) -> Vec<Arc<Grant>> {
        let Self { turns, sent_at, answers } = self;
        let (mut answers, kind) = match answers {
            Ok(answers) => (answers.into_iter(), StoreErrorKind::Indeterminate),
            Err(error) => (Vec::new().into_iter(), error.kind()),
        };
        let mut lost = Vec::new();
        for (key, turn) in turns {
            let answer = answers.next().ok_or(kind);
            // Whoever holds a lease of the turn by now: the answer is about the turn.
            if !watchlist.watches(key) {
                continue;
            }
            let lease = watchlist.holder(key);
            if let Some(attempt) = settle_one(lease.as_deref(), sent_at, &answer) {
                watchlist.answered(key, sent_at, attempt);
            } else {
                // Whoever has taken a lease of the turn meanwhile has lost it too.
                if let Some(lease) = watchlist.remove(key) {
                    let _ = lease.lose(LossReason::Gone);
                }
                lost.push(turn);
            }
        }
        lost
    }
}

/// Applies one answer; `None` means that there is nothing left to renew.
fn settle_one(
    lease: Option<&HeldLease>,
    sent_at: Instant,
    answer: &Result<RenewAnswer, StoreErrorKind>,
) -> Option<Attempt> {
    let (outcome, attempt) = match answer {
        Ok(RenewAnswer::Renewed { remaining }) => match lease {
            Some(lease) if lease.renewed(sent_at, *remaining) => {
                (RenewalOutcome::Renewed, Some(Attempt::Confirmed))
            }
            Some(_) => (RenewalOutcome::Lost, Some(Attempt::Unconfirmed)),
            // Whoever takes the next lease does not know of it: it is renewed again.
            None => (RenewalOutcome::Renewed, Some(Attempt::Unconfirmed)),
        },
        Ok(RenewAnswer::Gone | RenewAnswer::Corrupt) => {
            if let Some(lease) = lease {
                let _ = lease.lose(LossReason::Gone);
            }
            (RenewalOutcome::Lost, None)
        }
        // An error is not a loss: the lease stands until its deadline.
        Err(StoreErrorKind::Indeterminate) => (RenewalOutcome::Unknown, Some(Attempt::Unconfirmed)),
        Err(_) => (RenewalOutcome::Held, Some(Attempt::Unconfirmed)),
    };
    if let Some(lease) = lease {
        lease.metrics().renewal(outcome);
    }
    attempt
}
