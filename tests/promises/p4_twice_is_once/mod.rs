//! P4, twice is once: every command may run twice, late, or with its reply lost, and ends in the
//! same state. A cancelled acquire leaves nothing behind but, at worst, one unrenewed lease that
//! expires by itself.

mod cancelled;
mod repeated;
