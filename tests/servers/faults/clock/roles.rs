use super::{client_clock_steps, server_clock_back};
use crate::support::child;

/// The module whose test is the program of a child.
pub(super) const CHILD: &str = module_path!();

#[test]
fn child_program() {
    match child::role().as_deref() {
        Some(client_clock_steps::ROLE) => child::run(client_clock_steps::hold()),
        Some(client_clock_steps::NAIVE_ROLE) => child::run(client_clock_steps::hold_naively()),
        Some(server_clock_back::ROLE) => child::run(server_clock_back::hold()),
        _ => {}
    }
}
