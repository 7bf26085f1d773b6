//! The gate on a real PostgreSQL: what a stale writer can do without one, and not with one.

mod admit;
mod columns;
mod conflict;
mod failure;
mod rows;
mod server;
mod support;
mod traps;
