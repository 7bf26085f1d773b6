use super::{client_clock_steps, server_clock_back};
use crate::support::child;

/// Runs a child of one of the roles of this room.
pub(crate) fn run_if_child() {
    match child::role().as_deref() {
        Some(client_clock_steps::ROLE) => child::run(client_clock_steps::hold()),
        Some(client_clock_steps::NAIVE_ROLE) => child::run(client_clock_steps::hold_naively()),
        Some(server_clock_back::ROLE) => child::run(server_clock_back::hold()),
        _ => {}
    }
}
