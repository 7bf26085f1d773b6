//! What workers saw of one lock, and whether it could have been.

mod answers;
mod belief;
mod blocks;
mod closed;
mod deed;
mod event;
mod fences;
mod idle;
mod losses;
mod order;
mod recorder;
mod reuse;
mod steady;
mod storage;
mod summary;
#[cfg(test)]
mod tests;
mod turns;
mod violation;
mod waiting;

pub use deed::Deed;
pub use event::{Event, Worker};
pub use recorder::History;
pub use summary::Summary;
pub use violation::{Overlap, Violation};
