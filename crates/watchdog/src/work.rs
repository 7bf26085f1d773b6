use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Instant,
    lease::{Grant, LossReason},
};

use crate::batch::Batch;

/// What is to be done at one instant.
#[derive(Debug, Default)]
pub(crate) struct Work {
    /// Renewals to send.
    pub(crate) batches: Vec<Batch>,
    /// How late the renewals are.
    pub(crate) lags: Vec<Duration>,
    /// Turns that are over before their time, and until when their locks stay closed.
    pub(crate) lost: Vec<(Arc<Grant>, LossReason, Option<Instant>)>,
}
