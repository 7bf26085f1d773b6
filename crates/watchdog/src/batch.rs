use std::{
    collections::{BTreeMap, btree_map},
    sync::Arc,
    time::Duration,
};

use leasehold_core::{
    Instant, LockStore, StoreError, StoreErrorKind, Ttl,
    lease::{Grant, LossReason},
    metric::RenewalOutcome,
    store::{RenewAnswer, Renewal},
};

use crate::{
    lease::HeldLease,
    slots::Key,
    watchlist::{Holder, Watchlist},
};

/// What a renewal came to, for a turn that stands.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Attempt {
    /// The turn was extended.
    Confirmed,
    /// It may or may not have been extended: try again soon, until the deadline.
    Unconfirmed,
}

/// Turns of one ttl whose renewals travel in one command.
#[derive(Debug)]
pub(crate) struct Batch {
    /// For how long the answer is awaited.
    patience: Duration,
    pub(crate) turns: Vec<(Key, Arc<Grant>)>,
}

/// Turns to be renewed.
#[derive(Debug, Default)]
pub(crate) struct Batches {
    full: Vec<Batch>,
    /// Those whose answers are awaited for less than a sixth of their ttl travel apart.
    open: BTreeMap<(Ttl, bool), Batch>,
}

impl Batches {
    /// Adds a turn to an open batch of its ttl.
    pub(crate) fn add(&mut self, key: Key, turn: &Arc<Grant>, patience: Duration) {
        let kind = (turn.ttl(), patience < turn.ttl().get() / 6);
        let open = self.open.entry(kind).or_insert_with(|| Batch { patience, turns: Vec::new() });
        open.patience = open.patience.min(patience);
        open.turns.push((key, Arc::clone(turn)));
        if open.turns.len() == Batch::MAX {
            self.full.extend(self.open.remove(&kind));
        }
    }
}

impl IntoIterator for Batches {
    type Item = Batch;
    type IntoIter =
        std::iter::Chain<std::vec::IntoIter<Batch>, btree_map::IntoValues<(Ttl, bool), Batch>>;

    fn into_iter(self) -> Self::IntoIter {
        self.full.into_iter().chain(self.open.into_values())
    }
}

impl Batch {
    /// The most turns of one command.
    pub(crate) const MAX: usize = 256;

    /// Renews the turns.
    pub(crate) async fn renew(
        self,
        store: Arc<dyn LockStore>,
        watchlist: Arc<Watchlist>,
    ) -> Renewed {
        let renewals: Vec<Renewal> = self.turns.iter().map(|(_, turn)| renewal(turn)).collect();
        let sent_at = watchlist.clock().now();
        let mut unsettled = Unsettled { watchlist, turns: self.turns };
        let answers = store.renew(&renewals, sent_at + self.patience).await;
        Renewed { turns: std::mem::take(&mut unsettled.turns), renewals, sent_at, answers }
    }
}

fn renewal(turn: &Grant) -> Renewal {
    Renewal { name: turn.name().clone(), id: turn.id(), fence: turn.first(), ttl: turn.ttl() }
}

/// Renewals on their way: a store that panics leaves them unconfirmed, to be tried again.
#[derive(Debug)]
struct Unsettled {
    watchlist: Arc<Watchlist>,
    turns: Vec<(Key, Arc<Grant>)>,
}

impl Drop for Unsettled {
    fn drop(&mut self) {
        for (key, _) in &self.turns {
            if let Some(lease) = self.watchlist.holder(*key) {
                lease.metrics().renewal(RenewalOutcome::Unknown);
            }
        }
        let now = self.watchlist.clock().now();
        let attempts = self.turns.iter().map(|(key, _)| (*key, Attempt::Unconfirmed));
        self.watchlist.answered(now, attempts);
    }
}

/// What came of a batch.
#[derive(Debug)]
pub(crate) struct Renewed {
    pub(crate) turns: Vec<(Key, Arc<Grant>)>,
    pub(crate) renewals: Vec<Renewal>,
    pub(crate) sent_at: Instant,
    pub(crate) answers: Result<Vec<RenewAnswer>, StoreError>,
}

impl Renewed {
    /// Tells every turn its answer; yields the turns that are lost.
    pub(crate) fn settle(self, now: Instant, watchlist: &Watchlist) -> Vec<Arc<Grant>> {
        let Self { turns, renewals, sent_at, answers } = self;
        let (mut answers, kind) = match answers {
            Ok(answers) => (answers.into_iter(), StoreErrorKind::Indeterminate),
            Err(error) => (Vec::new().into_iter(), error.kind()),
        };
        let (mut lost, mut attempts) = (Vec::new(), Vec::with_capacity(turns.len()));
        let holders = watchlist.holders(turns.iter().map(|(key, _)| *key));
        // Not before: what its names point to has just been read.
        drop(renewals);
        for ((key, turn), holder) in turns.into_iter().zip(&holders) {
            let answer = answers.next().ok_or(kind);
            // Whoever holds a lease of the turn by now: the answer is about the turn.
            let lease = match holder {
                Holder::Unwatched => continue,
                Holder::Nobody => None,
                Holder::Lease(lease) => Some(&**lease),
            };
            match settle_one(lease, now, sent_at, &answer) {
                Some(attempt) => attempts.push((key, attempt)),
                None => lost.push((key, turn)),
            }
        }
        watchlist.answered(now, attempts.into_iter());
        let told = |(key, turn)| {
            // Whoever has taken a lease of the turn meanwhile has lost it too.
            if let Some(lease) = watchlist.remove(key) {
                let _ = lease.lose(LossReason::Gone);
            }
            turn
        };
        lost.into_iter().map(told).collect()
    }
}

/// Applies one answer; `None` means that there is nothing left to renew.
fn settle_one(
    lease: Option<&HeldLease>,
    now: Instant,
    sent_at: Instant,
    answer: &Result<RenewAnswer, StoreErrorKind>,
) -> Option<Attempt> {
    let (outcome, attempt) = match answer {
        Ok(RenewAnswer::Renewed { remaining }) => match lease {
            Some(lease) if lease.renewed(now, sent_at, *remaining) => {
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
