//! A TCP proxy before a real server, which loses, delays, repeats, holds, answers and cuts what
//! passes, message by message.

mod action;
mod book;
mod control;
mod counts;
mod down;
mod fault_proxy;
mod frame;
mod hole;
mod library;
mod link;
mod message;
mod outstanding;
mod replay;
mod rule;
mod rules;
mod storm;
mod up;

pub use action::Action;
pub use counts::Counts;
pub use fault_proxy::FaultProxy;
pub use hole::{Direction, Links};
pub use rule::{Rule, RuleId};
pub use storm::Storm;
