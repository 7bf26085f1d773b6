use super::client_clocks_apart;
use crate::support::child;

/// The module whose test is the program of a child.
pub(super) const CHILD: &str = module_path!();

#[test]
fn child_program() {
    match child::role().as_deref() {
        Some(client_clocks_apart::ROLE) => child::run(client_clocks_apart::share()),
        Some(client_clocks_apart::NAIVE_ROLE) => child::run(client_clocks_apart::share_naively()),
        _ => {}
    }
}
