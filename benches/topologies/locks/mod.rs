//! Locks whose commands are sent one by one, at the store and without a lock runtime.

mod actors;
mod lock;
mod step;

pub(crate) use actors::Actors;
pub(crate) use step::Step;
