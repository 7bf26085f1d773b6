//! The gate before an HTTP service: a real server, real clients over TCP, leases of a real lock.

#![cfg(feature = "tower")]

#[path = "gate_http/client.rs"]
mod client;
#[path = "gate_http/holding.rs"]
mod holding;
#[path = "gate_http/locked.rs"]
mod locked;
#[path = "gate_http/naming.rs"]
mod naming;
#[path = "gate_http/server.rs"]
mod server;
#[path = "gate_http/servers.rs"]
mod servers;
