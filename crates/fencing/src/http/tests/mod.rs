//! The layer around services that the tests steer, without a server.

mod crowding;
mod handler;
mod holding;
mod refusing;
