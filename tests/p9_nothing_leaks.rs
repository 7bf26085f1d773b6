//! P9, nothing leaks: what is kept of a name has an end, maps in memory shrink when names go idle,
//! and the tasks of a runtime end with it.

#[path = "p9_nothing_leaks/lifetimes.rs"]
mod lifetimes;
#[path = "p9_nothing_leaks/memory.rs"]
mod memory;
#[path = "p9_nothing_leaks/shutdown.rs"]
mod shutdown;
mod virtual_support;
