//! The watchdog of Leasehold: it renews turns before they end and tells the holders of their leases
//! when they are gone. Use the `leasehold` crate; this one is a part of it.
//!
//! - [`HeldLease`] is one lease in its holder's eyes, with the signal of its loss.
//! - [`RenewalPlan`] says when a turn is due, as a pure function of time and outcome.
//! - [`Watches`] is what is watched, and [`Watchdog`] the thin driver: one task per runtime, due
//!   turns in one command.

mod batch;
mod company;
mod driver;
mod due;
mod keeper;
mod lease;
mod plan;
#[doc(hidden)]
pub mod seam;
mod signal;
mod slots;
#[cfg(test)]
mod tests;
mod watchdog;
mod watches;
mod watchlist;
mod work;

pub use due::DueQueue;
pub use keeper::TurnKeeper;
pub use lease::{Common, Farewell, HeldLease, Share};
pub use plan::{RenewalPlan, Renewing};
pub use signal::{LeaseEnd, Lost};
pub use slots::Key;
pub use watchdog::Watchdog;
pub use watches::{Watch, Watches};
