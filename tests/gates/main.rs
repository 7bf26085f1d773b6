//! The gates before their storages: Redis, PostgreSQL, object stores and HTTP services; what a
//! stale writer can do without one, and not with one.

mod contract;
mod http;
mod object;
mod postgres;
mod redis;
mod s3;
