//! The master that Sentinels name: who is believed, and where a lease lives after a failover.

mod believed;
mod failover;
