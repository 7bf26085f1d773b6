//! Real PostgreSQL servers that a test starts for itself.

mod account;
mod binaries;
mod builder;
mod launch;
mod postgres_server;

pub use builder::PostgresServerBuilder;
pub use postgres_server::PostgresServer;
