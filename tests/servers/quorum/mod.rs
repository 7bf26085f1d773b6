//! Locks on several independent servers.

mod connects;
mod init;
mod outage;
mod promises;
mod setups;
