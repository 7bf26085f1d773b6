//! Runs that are done once, and minimum holds, on a real server: by processes that submit the same
//! thing at once, and by some that are killed in the midst of it.
#![expect(clippy::disallowed_methods, reason = "killed processes take real time")]

#[path = "real_support/child.rs"]
mod child;
#[path = "real_once/killed.rs"]
mod killed;
#[path = "real_once/minimum.rs"]
mod minimum;
#[path = "real_support/patient.rs"]
mod patient;
#[path = "real_once/race.rs"]
mod race;
#[path = "real_once/server.rs"]
mod server;
#[path = "real_support/wait.rs"]
mod wait;

/// What a child of this file does.
#[test]
fn child_program() {
    match child::role().as_deref() {
        Some("click") => child::run(race::click()),
        Some("run") => child::run(killed::run()),
        Some("hold") => child::run(minimum::hold()),
        _ => {}
    }
}
