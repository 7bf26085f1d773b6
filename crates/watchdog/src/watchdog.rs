use std::sync::Arc;

use leasehold_core::{LockStore, metric::Metrics};
use tokio::runtime::Handle;

use crate::{driver::Driver, keeper::TurnKeeper, watches::Watches};

/// Renews the turns of one runtime and notices the ones that end.
///
/// One task does it all. It dies with this handle, and if it dies before, every lease it watched
/// becomes lost at once: nobody believes in a lease that nobody renews.
#[derive(Debug)]
pub struct Watchdog {
    watches: Watches,
}

impl Watchdog {
    /// Starts the task on a tokio runtime.
    pub fn start(
        runtime: &Handle,
        watches: Watches,
        store: Arc<dyn LockStore>,
        keeper: Arc<dyn TurnKeeper>,
        metrics: Arc<Metrics>,
    ) -> Self {
        let driver = Driver::new(Arc::clone(watches.list()), store, keeper, metrics);
        drop(runtime.spawn(driver.run()));
        Self { watches }
    }
}

impl Drop for Watchdog {
    fn drop(&mut self) {
        self.watches.list().stop();
    }
}
