//! `leasehold run`: a command that lives as long as its lease.
//!
//! Three processes: this one holds the lease and supervises; the *starter* waits until the lock is
//! acquired, and then becomes the command; the *guard* ends the command when this process is killed, or
//! stands still past the beginning of the grace.

mod grace;
mod group;
mod guard;
mod guard_rules;
mod held;
mod helper;
mod perform;
mod rules;
mod signals;
mod starter;
mod supervise;
mod surrounding;
mod terminal;
mod waiting;

pub(crate) use guard::guard;
pub(crate) use perform::run;
pub(crate) use starter::start;

/// The hidden commands of the helpers.
pub(crate) const GUARD: &str = "__guard";
pub(crate) const STARTER: &str = "__start";
