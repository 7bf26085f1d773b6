//! Locks on several independent servers.

mod connects;
mod promises;
mod takes_and_gives;
