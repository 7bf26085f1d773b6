//! Faults of data, rights and names: what is right, and what happens without the protection.
#![expect(clippy::disallowed_methods, reason = "real servers and processes take real time")]

#[path = "faults/data/mod.rs"]
mod data;
#[path = "faults/support/mod.rs"]
mod support;

#[test]
fn child_program() {
    support::worker::run_if_child();
    data::herd_child::run_if_child();
}
