//! Runs that are done once, and minimum holds, on a real server: by processes that submit the same
//! thing at once, and by some that are killed in the midst of it.
#![expect(clippy::disallowed_methods, reason = "killed processes take real time")]

mod killed;
mod minimum;
mod race;
mod server;

use crate::support::child;

/// The module whose test is the program of a child.
const CHILD: &str = module_path!();

#[test]
fn child_program() {
    match child::role().as_deref() {
        Some("click") => child::run(race::click()),
        Some("run") => child::run(killed::run()),
        Some("hold") => child::run(minimum::hold()),
        _ => {}
    }
}
