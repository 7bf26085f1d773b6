//! The watchdog of Leasehold: it renews turns before they end, and signals to holders that their
//! leases are lost. Use the `leasehold` crate; this one is a part of it.
//!
//! - [`HeldLease`] is one lease in its holder's eyes, with the signal of its loss.
//! - [`RenewalPlan`] says when a turn is due, as a pure function of time and outcome.
//! - [`Watches`] holds the turns that are watched, and [`Watchdog`] is the thin driver: one task
//!   per runtime, which renews due turns together.

mod batch;
mod due;
mod durations;
mod lease;
mod plan;
#[cfg(test)]
mod tests;
mod watchdog;
mod watches;

pub use due::{DueQueue, Key};
pub use lease::{HeldLease, Lost, ReleasedLease, Share};
pub use plan::{RenewalPlan, Renewing};
pub use watchdog::{TurnKeeper, Watchdog};
pub use watches::{Watch, Watches};
