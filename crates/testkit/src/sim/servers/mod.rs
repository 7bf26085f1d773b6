//! The servers of a simulated world: masters, replicas that lag, slots that move, Sentinels.

mod chart;
mod fleet;
mod layout;
mod links;
mod news;
mod node;
mod place;
mod slots;
mod stream;
mod waiting;

pub(super) use fleet::{Fleet, Promotion};
pub use layout::{Layout, Stranger};
pub(super) use news::{Copying, News};
pub(super) use node::State;
pub(super) use place::{node_at, place_of};
pub(super) use waiting::Waiting;
