//! A TCP proxy before a real server, which loses, delays, repeats, holds, answers and cuts what
//! passes, message by message.

mod action;
mod book;
mod counts;
mod down;
mod fault_proxy;
mod frame;
mod hole;
mod inlet;
mod library;
mod line;
mod link;
mod listener;
mod message;
mod outlet;
mod replay;
mod rule;
mod rules;
mod storm;
mod up;
mod upstream;

pub use action::Action;
pub use counts::Counts;
pub use fault_proxy::FaultProxy;
pub use hole::{Direction, Links};
pub use library::{script_of_commands, script_of_gathered_commands};
pub use rule::{Rule, RuleId};
pub use storm::Storm;
