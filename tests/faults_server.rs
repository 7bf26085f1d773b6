//! Faults of the server: what is right, and what happens without the protection.
#![expect(clippy::disallowed_methods, reason = "servers in trouble take real time")]

#[path = "faults/server/mod.rs"]
mod server;
#[path = "faults/support/mod.rs"]
mod support;

#[test]
fn child_program() {
    support::worker::run_if_child();
}
