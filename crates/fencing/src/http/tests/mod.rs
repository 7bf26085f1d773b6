//! The layer around services that the tests steer, without a server.

mod handler;
mod holding;
mod refusing;
