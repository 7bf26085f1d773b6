use std::sync::Arc;

use leasehold_core::{
    Instant, LockStore, StoreError, StoreErrorKind, Ttl,
    metric::RenewalOutcome,
    store::{RenewAnswer, Renewal},
};

use crate::{lease::HeldLease, plan::Attempt, watchlist::Watchlist};

/// Leases of one ttl whose renewals travel in one command.
#[derive(Debug)]
pub(crate) struct Batch {
    ttl: Ttl,
    leases: Vec<(u64, Arc<HeldLease>)>,
}

impl Batch {
    /// The most leases of one command.
    const MAX: usize = 128;

    /// Adds a lease to the last batch of its ttl, or begins a new one.
    pub(crate) fn collect(batches: &mut Vec<Self>, key: u64, lease: Arc<HeldLease>) {
        let ttl = lease.ttl();
        let open = batches.iter_mut().rev().find(|batch| batch.ttl == ttl);
        match open.filter(|batch| batch.leases.len() < Self::MAX) {
            Some(batch) => batch.leases.push((key, lease)),
            None => batches.push(Self { ttl, leases: vec![(key, lease)] }),
        }
    }

    /// Renews the leases; the command has a sixth of their ttl.
    pub(crate) async fn renew(
        self,
        store: Arc<dyn LockStore>,
        watchlist: Arc<Watchlist>,
    ) -> Renewed {
        let renewals: Vec<Renewal> = self.leases.iter().map(|(_, lease)| lease.renewal()).collect();
        let sent_at = watchlist.clock.now();
        let mut unsettled = Unsettled { watchlist, sent_at, leases: self.leases };
        let answers = store.renew(&renewals, sent_at + self.ttl.get() / 6).await;
        Renewed { leases: std::mem::take(&mut unsettled.leases), sent_at, answers }
    }
}

/// Renewals on their way: a store that panics leaves them unconfirmed, to be tried again.
#[derive(Debug)]
struct Unsettled {
    watchlist: Arc<Watchlist>,
    sent_at: Instant,
    leases: Vec<(u64, Arc<HeldLease>)>,
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        for (key, lease) in &self.leases {
            lease.metrics().renewal(RenewalOutcome::Unknown);
            self.watchlist.answered(*key, lease, self.sent_at, Attempt::Unconfirmed);
        }
    }
}

/// What came of a batch.
#[derive(Debug)]
pub(crate) struct Renewed {
    leases: Vec<(u64, Arc<HeldLease>)>,
    pub(crate) sent_at: Instant,
    pub(crate) answers: Result<Vec<RenewAnswer>, StoreError>,
}

impl Renewed {
    /// Tells every lease its answer; yields what is still to be renewed, and how it went.
    pub(crate) fn settle(self, now: Instant) -> Vec<(u64, Arc<HeldLease>, Attempt)> {
        let Self { leases, sent_at, answers } = self;
        let answers = match answers {
            Ok(answers) => answers.into_iter().map(Ok).collect(),
            Err(error) => vec![Err(error.kind()); leases.len()],
        };
        let settled = leases.into_iter().zip(answers);
        settled
            .filter_map(|((key, lease), answer)| {
                let (outcome, attempt) = settle_one(&lease, now, sent_at, &answer);
                lease.metrics().renewal(outcome);
                attempt.map(|attempt| (key, lease, attempt))
            })
            .collect()
    }
}

/// Applies one answer; `None` means that there is nothing left to renew.
fn settle_one(
    lease: &HeldLease,
    now: Instant,
    sent_at: Instant,
    answer: &Result<RenewAnswer, StoreErrorKind>,
) -> (RenewalOutcome, Option<Attempt>) {
    match answer {
        Ok(RenewAnswer::Renewed { remaining }) => {
            // The margin is what was left of the belief that this answer extends.
            let margin = lease.deadline().saturating_since(now);
            if !lease.extended(sent_at, *remaining).is_held() {
                return (RenewalOutcome::Lost, None);
            }
            lease.metrics().renewal_margin(margin);
            (RenewalOutcome::Renewed, Some(Attempt::Confirmed))
        }
        Ok(RenewAnswer::Gone | RenewAnswer::Corrupt) => {
            let _ = lease.lose(leasehold_core::lease::LossReason::Gone);
            (RenewalOutcome::Lost, None)
        }
        // An error is not a loss: the lease stands until its deadline.
        Err(StoreErrorKind::Indeterminate) => (RenewalOutcome::Unknown, Some(Attempt::Unconfirmed)),
        Err(_) => (RenewalOutcome::Held, Some(Attempt::Unconfirmed)),
    }
}
