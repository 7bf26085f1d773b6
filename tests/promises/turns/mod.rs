//! Corners of turns: what the task before leaves to the next, who is told of a turn that is lost,
//! and who waits for an answer that nobody hears.

mod first_renewal;
mod kept;
mod line;
mod lost;
mod max_hold;
mod race;
mod release;
