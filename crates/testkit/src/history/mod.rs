//! What workers saw of one lock, and whether it could have been.

mod belief;
mod event;
mod fences;
mod recorder;
mod storage;
mod summary;
mod violation;

pub use event::{Event, Worker};
pub use recorder::History;
pub use summary::Summary;
pub use violation::{Overlap, Violation};
