//! How a process of a simulated world finds the server of a lock.

mod cluster;
mod group;
mod looks;
mod router;
mod rules;

pub(super) use router::Router;
pub use rules::Rules;
