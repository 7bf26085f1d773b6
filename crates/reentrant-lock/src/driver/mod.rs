//! What drives the rules of turns: the cohorts of all names, their timers and commands, and what
//! the store tells without being asked.

mod agenda;
mod cohorts;
mod commands;
mod heartbeats;
mod line;
mod listener;
mod look;
mod reports;
#[cfg(test)]
mod tests;

pub(crate) use cohorts::{Cohorts, Shared};
pub(crate) use heartbeats::{Heartbeats, HeartbeatsTask};
pub(crate) use line::{Entered, Found, GivenBack, InLine, Led, Wish};
