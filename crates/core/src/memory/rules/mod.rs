//! What each script does, as a function of a row, the time and the command.
//!
//! A [`Step`] is one execution: its state, and the messages that it sends. One file for each
//! command, and those that all share: [`block`], [`grant`], [`queue`].

mod acquire;
mod block;
mod extend;
mod force_release;
mod grant;
mod inspect;
mod queue;
mod release;
mod step;
mod withdraw;

pub(crate) use block::exhausted;
pub(super) use queue::Asker;
pub(super) use step::Step;
pub(crate) use withdraw::WITHDRAWAL_MARK;
