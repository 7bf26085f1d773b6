//! The watchdog of Leasehold: it renews leases before they end and tells their holders when they
//! are gone. Use the `leasehold` crate; this one is a part of it.
//!
//! - [`HeldLease`] is one lease in its holder's eyes, with the signal of its loss.
//! - [`RenewalPlan`] says when a lease is due, as a pure function of time and outcome.
//! - [`Watchdog`] is the thin driver: one task per runtime, due leases in one command.

mod batch;
mod claim;
mod driver;
mod due;
mod lease;
mod plan;
mod signal;
mod watchdog;
mod watchlist;
mod work;

pub use claim::Claim;
pub use lease::HeldLease;
pub use plan::{Attempt, RenewalPlan};
pub use signal::{LeaseEnd, Lost};
pub use watchdog::{Watch, Watchdog};
