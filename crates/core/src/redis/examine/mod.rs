//! Asks servers and Sentinels for the facts of a diagnosis. Every question has a deadline, and what
//! is not answered is a fact, too.

mod asker;
mod cluster;
mod examiner;
mod quorum;
mod replication;
mod scripts;
mod sentinels;
mod server;
mod settings;
mod timing;

pub use examiner::Examiner;
