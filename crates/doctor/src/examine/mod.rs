//! Asks servers and Sentinels for the facts of a diagnosis. Every question has a deadline, and what
//! is not answered is a fact, too.

mod client;
mod examiner;
mod questions;
mod sentinels;

pub use examiner::Examiner;
