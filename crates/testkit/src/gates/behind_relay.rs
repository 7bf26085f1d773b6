use leasehold_core::Stamp;

use super::{Faults, Relay};
use crate::contract::Task;

/// A subject whose clients reach their storage through a [`Relay`]: the relay makes its faults.
pub trait BehindRelay: Send + Sync {
    /// The relay before the storage.
    fn relay(&self) -> &Relay;

    /// A text of the request with which a write of a lease takes effect. Default: the lease.
    fn takes_effect_by(&self, of: Stamp, _gated: bool) -> String {
        of.lease.to_string()
    }

    /// As [`Faults::repeats`]. Default: `false`.
    fn client_repeats(&self) -> bool {
        false
    }
}

impl<T: BehindRelay> Faults for T {
    fn lose_answer(&self, of: Stamp, gated: bool) {
        self.relay().lose_answer(&self.takes_effect_by(of, gated));
    }

    fn hold(&self, of: Stamp) {
        self.relay().hold(&of.lease.to_string());
    }

    fn held(&self) -> Task<'_> {
        self.relay().held()
    }

    fn deliver(&self) -> Task<'_> {
        self.relay().deliver()
    }

    fn has_struck(&self) -> bool {
        self.relay().has_struck()
    }

    fn repeats(&self) -> bool {
        self.client_repeats()
    }

    /// More pieces than any client here needs for a write.
    fn crash_points(&self) -> u64 {
        16
    }

    fn crash_at(&self, point: u64) {
        self.relay().cut_at(point);
    }

    fn calm(&self) {
        self.relay().calm();
    }
}
