//! Processes that stand still, stall and end.

mod roles;
mod scene;

mod acquire_cancelled;
mod double_release;
mod executor_stalled;
mod executor_stalled_own_thread;
mod forked;
mod holder_killed;
mod identities;
mod idle_holder_killed;
mod idle_holder_stopped;
mod panic_in_section;
mod process_aborts;
mod process_paused;
mod renewal_task_dies;
mod runtime_dropped;
mod shutdown_while_holding;
mod turn_paused;
mod waiter_killed;
