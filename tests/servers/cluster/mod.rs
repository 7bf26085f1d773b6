//! Locks on a Cluster: where a lease lives after a failover, and while its slot moves.

mod failover;
mod migration;
mod outage;
mod scene;
