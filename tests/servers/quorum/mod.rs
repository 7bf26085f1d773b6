//! Locks on several independent servers.

mod connects;
mod outage;
mod promises;
mod takes_and_gives;
