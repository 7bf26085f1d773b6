//! The gates before their storages: Redis, PostgreSQL, object stores and HTTP services.

mod contract;
mod http;
mod object;
mod s3;
