//! Faults of processes: what is right, and what happens without the protection.
#![expect(clippy::disallowed_methods, reason = "stopped processes take real time")]

#[path = "faults/process/mod.rs"]
mod process;
#[path = "faults/support/mod.rs"]
mod support;

#[test]
fn child_program() {
    support::worker::run_if_child();
    process::roles::run_if_child();
}
