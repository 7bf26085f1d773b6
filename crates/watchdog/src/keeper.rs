use std::fmt;

use leasehold_core::{
    Instant,
    lease::{Grant, LossReason},
};

/// Who keeps the turns of a runtime, and has to know when one is over before its time.
pub trait TurnKeeper: fmt::Debug + Send + Sync + 'static {
    /// A turn is lost; the lease that stood under it was told before, and asked that the lock stay
    /// closed until then. Must not block.
    fn lost(&self, turn: &Grant, reason: LossReason, closed_until: Option<Instant>);

    /// How many tasks wait for a lock.
    fn waiting(&self) -> usize;
}
