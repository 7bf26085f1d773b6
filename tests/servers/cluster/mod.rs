//! Locks on a Cluster: where a lease lives after a failover, and while its slot moves; and how a
//! process finds that out.

mod announced;
mod bad_network;
mod failover;
mod gathered;
mod half_moved;
mod looks;
mod outage;
pub(crate) mod scene;
mod sharded;
mod strangers;
