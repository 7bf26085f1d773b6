//! Corners of turns: what the task before leaves to the next, who is told of a turn that is lost,
//! and who waits for an answer that nobody hears.

#[path = "reviewed_turns/line.rs"]
mod line;
#[path = "reviewed_turns/lost.rs"]
mod lost;
#[path = "reviewed_turns/max_hold.rs"]
mod max_hold;
#[path = "reviewed_turns/race.rs"]
mod race;
#[path = "reviewed_turns/release.rs"]
mod release;
mod virtual_support;
