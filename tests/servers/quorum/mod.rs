//! Locks on several independent servers.

mod takes_and_gives;
