//! The master that Sentinels name: who is believed, and what a failover costs.

mod believed;
mod failover;
