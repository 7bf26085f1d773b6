//! The Sentinels that name a master: what they are asked, and whom to believe.

mod ballot;
mod group;
mod member;

pub(super) use group::Group;
