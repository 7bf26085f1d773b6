use super::{
    acquire_cancelled, executor_stalled_own_thread, forked, holder_killed, identities,
    idle_holder_stopped, panic_in_section, process_aborts, runtime_dropped, scene,
    shutdown_while_holding, waiter_killed,
};
use crate::support::child;

/// The module whose test is the program of a child.
pub(super) const CHILD: &str = module_path!();

#[test]
fn child_program() {
    match child::role().as_deref() {
        Some(scene::HOLDER) => child::run(scene::hold_and_release()),
        Some(scene::IDLER) => child::run(scene::keep_idle()),
        Some(scene::WAITER) => child::run(scene::wait_and_hold()),
        Some(acquire_cancelled::ROLE) => child::run(acquire_cancelled::cancel()),
        Some(executor_stalled_own_thread::ROLE) => child::run(executor_stalled_own_thread::stall()),
        Some(forked::LAZY_ROLE) => forked::fork_lazy(),
        Some(forked::HOLDING_ROLE) => forked::fork_holding(),
        Some(holder_killed::ROLE) => child::run(holder_killed::hold_naively()),
        Some(identities::ROLE) => child::run(identities::compete()),
        Some(identities::NAIVE_ROLE) => child::run(identities::compete_naively()),
        Some(idle_holder_stopped::ROLE) => child::run(idle_holder_stopped::keep_idle()),
        Some(panic_in_section::ROLE) => child::run(panic_in_section::panic_holding()),
        Some(process_aborts::ROLE) => child::run(process_aborts::abort_holding()),
        Some(process_aborts::NAIVE_ROLE) => child::run(process_aborts::abort_naively()),
        Some(runtime_dropped::ROLE) => runtime_dropped::drop_runtimes(),
        Some(runtime_dropped::NAIVE_ROLE) => runtime_dropped::drop_naively(),
        Some(shutdown_while_holding::ROLE) => child::run(shutdown_while_holding::leave_holding()),
        Some(waiter_killed::ROLE) => child::run(waiter_killed::wait_naively()),
        _ => {}
    }
}
