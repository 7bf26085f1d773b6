use std::{sync::Arc, time::Duration};

use crate::{batch::Batch, claim::Claim, lease::HeldLease};

/// What is to be done at one instant.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Renewals to send.
    pub(crate) batches: Vec<Batch>,
    /// How late the renewals are.
    pub(crate) lags: Vec<Duration>,
    /// Leases that were held for too long and are to be ended on the server.
    pub(crate) overdue: Vec<Arc<HeldLease>>,
    /// Claims whose future was not polled in time.
    pub(crate) expired: Vec<(u64, Arc<dyn Claim>)>,
}
