use std::sync::Arc;

use leasehold_core::{Entropy, Instant, metric::ClassMetrics};

use crate::{
    lease::{Common, HeldLease, Share},
    slots::Key,
    watchlist::Watchlist,
};

/// The turns that a [`Watchdog`](crate::Watchdog) watches; clones are the same.
///
/// Nothing here blocks or calls back, so it may be used inside of a caller's own lock.
#[derive(Debug, Clone)]
pub struct Watches(Arc<Watchlist>);

/// A turn that is watched, to be given back when it need not be any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch(Key);

impl Watches {
    /// Nothing is watched yet, and nobody watches before a watchdog is started.
    pub fn new(common: Arc<Common>, entropy: Arc<dyn Entropy>) -> Self {
        Self(Arc::new(Watchlist::new(common, entropy)))
    }

    /// What the leases that are taken here share.
    pub fn common(&self) -> &Arc<Common> {
        self.0.common()
    }

    /// Takes over a share of a turn, watched from now on if it was not before.
    ///
    /// [`HeldLease::taken`] is to be called outside of every lock. Where the watchdog's task has
    /// ended there is no watch, and the lease is the caller's to lose.
    pub fn take(
        &self,
        watch: Option<Watch>,
        share: &Share,
        now: Instant,
        metrics: Arc<ClassMetrics>,
    ) -> (Arc<HeldLease>, Option<Watch>) {
        let lease = HeldLease::new(share, now, self.common(), metrics);
        let key = self.0.occupy(watch.map(|watch| watch.0), &lease, share.renewing, now);
        (lease, key.map(Watch))
    }

    /// Nobody holds a lease of the turn any more, and the turn goes on: it is not renewed.
    pub fn vacate(&self, watch: Watch) {
        self.0.vacate(watch.0);
    }

    /// Watches a turn no longer.
    pub fn forget(&self, watch: Watch) {
        drop(self.0.remove(watch.0));
    }

    /// Whether the watchdog's task has ended: no turn is renewed any more.
    pub fn have_stopped(&self) -> bool {
        self.0.has_stopped()
    }

    /// Who holds a lease of a turn at present.
    pub fn holder(&self, watch: Watch) -> Option<Arc<HeldLease>> {
        self.0.holder(watch.0)
    }

    /// How many turns are watched at present.
    pub fn watched(&self) -> usize {
        self.0.len()
    }

    /// The leases that are held at present.
    pub fn leases(&self) -> Vec<Arc<HeldLease>> {
        self.0.leases()
    }

    pub(crate) fn list(&self) -> &Arc<Watchlist> {
        &self.0
    }
}
