//! Locks on several independent servers.

mod connects;
mod outage;
mod promises;
