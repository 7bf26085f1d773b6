//! The gate before an HTTP service: a real server, real clients over TCP, leases of a real lock.

mod client;
mod holding;
mod locked;
mod naming;
mod server;
mod servers;
