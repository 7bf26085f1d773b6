//! Who waits for whom: processes, what they hold and wait for, and the cycles among them.
//!
//! [`WaitGraph::of`] makes the graph of a list of locks; it sends nothing and reads no clock.

mod build;
mod cycle;
mod cycles;
mod own;
mod process;

pub use build::WaitGraph;
pub use cycle::{Certainty, Cycle, CycleStep};
pub(crate) use own::{OwnHolds, OwnerWait};
pub use process::{Hold, Process, Wait};
