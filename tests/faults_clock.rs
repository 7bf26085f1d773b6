//! Faults of clocks: what is right, and what happens without the protection.
#![expect(clippy::disallowed_methods, reason = "clocks of servers and processes are the matter")]

#[path = "faults/clock/mod.rs"]
mod clock;
#[path = "faults/support/mod.rs"]
mod support;

#[test]
fn child_program() {
    support::worker::run_if_child();
    clock::roles::run_if_child();
}
