//! The testkit keeps what it promises to the tests that rely on it.

mod child;
mod clock;
mod cluster;
mod faulty;
mod history;
mod peer;
mod proxy;
mod quorum;
mod sentinel;
mod server;
mod words;
