use std::{sync::PoisonError, time::Duration};

use leasehold_core::AcquisitionId;

use crate::{
    engine::Engine,
    error::{LeaseLost, SucceedError},
};

/// Within this time each name is warned of once, and at most eight names are.
const PAUSE: Duration = Duration::from_secs(10);

/// Warns that a run succeeded whose value does not tell that its door may open.
pub(super) fn warn_of(engine: &Engine, lease: AcquisitionId, error: &SucceedError) {
    let (SucceedError::Lost(LeaseLost { lock, fence, .. })
    | SucceedError::Unconfirmed { lock, fence, .. }) = error;
    let now = engine.clock.now();
    let mut ration = engine.unconfirmed.lock().unwrap_or_else(PoisonError::into_inner);
    let Some(left_out) = ration.take(lock, now, PAUSE) else { return };
    drop(ration);
    tracing::warn!(
        %lock, %lease, %fence, left_out,
        cause = error.cause().map(tracing::field::display),
        "the work is done, and the server has not confirmed that the door is closed: another run may \
         begin before the window is over"
    );
}
