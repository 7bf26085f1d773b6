//! What each script does, as a function of a row, the time and the command.
//!
//! A [`Step`] is one execution: its state, and the messages that it sends.

mod lease;
mod queue;
mod step;

pub(super) use step::Step;
