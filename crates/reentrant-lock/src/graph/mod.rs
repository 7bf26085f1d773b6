//! Who waits for whom: processes, what they hold and wait for, and the cycles among them.
//!
//! [`WaitGraph::of`] makes the graph of a list of locks; it sends nothing and reads no clock.

mod cycles;
mod own;
mod wait_graph;

pub use cycles::{Certainty, Cycle, CycleStep};
pub(crate) use own::{OwnerWait, certain_cycle_of, certain_cycles};
pub use wait_graph::{Hold, Process, Wait, WaitGraph};
