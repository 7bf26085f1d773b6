//! Faults of the network: what is right, and what happens without the protection.
#![expect(clippy::disallowed_methods, reason = "real connections take real time")]

#[path = "faults/network/mod.rs"]
mod network;
#[path = "faults/support/mod.rs"]
mod support;

#[test]
fn child_program() {
    support::worker::run_if_child();
    network::run_if_child();
}
