//! P7, first come, first served: runtimes in the order in which they queued, tasks of a runtime in
//! theirs; nobody barges past a live waiter, one waiter is woken per release, and no runtime is
//! passed over by more than one turn of another.

#[path = "p7_first_come/barging.rs"]
mod barging;
#[path = "p7_first_come/cancelled.rs"]
mod cancelled;
#[path = "p7_first_come/crowds.rs"]
mod crowds;
#[path = "p7_first_come/lost_replies.rs"]
mod lost_replies;
#[path = "p7_first_come/order.rs"]
mod order;
#[path = "p7_first_come/position.rs"]
mod position;
#[path = "p7_first_come/shared.rs"]
mod shared;
#[path = "p7_first_come/turns.rs"]
mod turns;
mod virtual_support;
