//! The store on Redis, where it differs from any other store: what it refuses and how it says so,
//! what it does when the server is in trouble, and how it connects.

mod bad_data;
mod batches;
mod connections;
mod dialing;
mod gathered;
mod idle_cuts;
mod lost_keys;
mod memory;
mod pushes;
mod refusals;
mod replicas;
mod rights;
mod scripts;
mod sharded;
mod slow_links;
mod stopped;
mod stored;
mod support;
mod switches;
#[cfg(feature = "tls")]
mod tls;
mod torn_slot;
mod versions;
