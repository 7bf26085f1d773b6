//! The layer around services that the tests control, without a server.

mod crowding;
mod handler;
mod holding;
mod refusing;
