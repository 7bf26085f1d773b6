//! Test doubles for code that uses locks. Use the `leasehold` crate with its feature `testing`,
//! which re-exports them as `leasehold::testing`.
//!
//! - [`ManualClock`] stands still until a test moves it.
//! - [`TestStore`] keeps leases in memory, fails on demand, and takes leases away from their
//!   holders.
//! - [`stamp`] makes the stamp of a lease that was never acquired.

#![cfg_attr(docsrs, feature(doc_cfg))]

mod clock;
mod stamp;
mod store;

pub use clock::ManualClock;
pub use stamp::stamp;
pub use store::{Failure, TestStore};
