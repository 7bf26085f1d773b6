//! The cases, by what they are about.

pub(super) mod faults;
pub(super) mod names;
pub(super) mod rule;
