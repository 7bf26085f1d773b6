use std::sync::Arc;

use leasehold_core::{Clock, Entropy, Instant, LockStore, metric::Metrics};
use tokio::runtime::Handle;

use crate::{
    claim::Claim, driver::Driver, lease::HeldLease, plan::RenewalPlan, watchlist::Watchlist,
};

/// Renews the leases of one runtime and notices the ones that end.
///
/// One task does it all. It dies with this handle, and if it dies before, every lease it watched
/// becomes lost at once: nobody believes in a lease that nobody renews.
#[derive(Debug)]
pub struct Watchdog {
    watchlist: Arc<Watchlist>,
    entropy: Arc<dyn Entropy>,
}

/// What the watchdog watches, to be given back when it need not any more.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub struct Watch(Option<u64>);

impl Watchdog {
    /// Starts the task on a tokio runtime.
    pub fn start(
        runtime: &Handle,
        store: Arc<dyn LockStore>,
        clock: Arc<dyn Clock>,
        entropy: Arc<dyn Entropy>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let watchlist = Arc::new(Watchlist::new(clock, Arc::clone(&entropy)));
        let driver = Driver::new(Arc::clone(&watchlist), store, metrics);
        drop(runtime.spawn(driver.run()));
        Self { watchlist, entropy }
    }

    /// Watches a claim: at `at` it expires, unless it was given back before.
    ///
    /// At once if it comes after [`close_claims`](Self::close_claims) or the end of the task.
    pub fn watch_claim(&self, at: Instant, claim: Arc<dyn Claim>) -> Watch {
        Watch(self.watchlist.add_claim(at, claim))
    }

    /// Watches a lease in place of the claim that it came from, and renews it if it `renews`.
    ///
    /// The lease is lost at once if the task has ended.
    pub fn watch_lease(&self, claim: Option<Watch>, lease: &Arc<HeldLease>, renews: bool) -> Watch {
        let plan = if renews {
            RenewalPlan::new(lease.since(), lease.ttl(), self.entropy.fraction())
        } else {
            RenewalPlan::never(lease.ttl())
        };
        Watch(self.watchlist.add_lease(claim.and_then(|claim| claim.0), lease, plan))
    }

    /// Watches a lease or claim no longer.
    pub fn forget(&self, watch: Watch) {
        if let Some(key) = watch.0 {
            self.watchlist.remove(key);
        }
    }

    /// Lets no claim in any more, and expires those that are watched; tells how many could not
    /// be, because their answer is being taken at this moment.
    pub fn close_claims(&self) -> usize {
        self.watchlist.close_claims()
    }

    /// Whether its task has ended: every claim expires at once, and no lease is renewed any more.
    pub fn has_stopped(&self) -> bool {
        self.watchlist.has_stopped()
    }

    /// How many leases and claims are watched at present.
    pub fn watched(&self) -> usize {
        self.watchlist.len()
    }

    /// The leases that are watched at present.
    pub fn leases(&self) -> Vec<Arc<HeldLease>> {
        self.watchlist.leases()
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.watchlist.stop();
    }
}
