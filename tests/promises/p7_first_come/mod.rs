//! P7, first come, first served: runtimes in the order in which they queued, tasks of a runtime in
//! theirs; nobody barges past a live waiter, one waiter is woken per release, and no runtime is
//! passed over by more than one turn of another.

mod barging;
mod cancelled;
mod crowds;
mod late_task;
mod lost_replies;
mod mixed;
mod order;
mod position;
mod shared;
mod turns;
