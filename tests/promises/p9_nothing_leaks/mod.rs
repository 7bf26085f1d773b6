//! P9, nothing leaks: what is kept of a name has an end, maps in memory shrink when names go idle,
//! and the tasks of a runtime end with it.

mod lifetimes;
mod memory;
mod shutdown;
