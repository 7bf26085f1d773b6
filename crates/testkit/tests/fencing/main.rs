//! The gates before real servers: what a stale writer can do without one, and not with one.

#[cfg(feature = "postgres")]
mod postgres;
mod redis;
