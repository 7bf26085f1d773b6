//! For the tests of Leasehold: the rules by which commands find their server.
//!
//! Not part of the public interface.

pub use crate::{
    acknowledge::acknowledged,
    cluster::{Choice, Learnt, Probe, Redirect, RedirectPolicy, SlotOwners, View, choose},
    sentinel::FoundMaster,
};
