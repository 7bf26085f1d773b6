//! What the rows share: the table, processes that work under a lock, and the locks of the controls.
#![allow(dead_code, reason = "some rooms use a part of it only")]

pub(crate) mod crew;
pub(crate) mod matrix;
pub(crate) mod naive;
pub(crate) mod worker;

#[path = "../../real_support/child.rs"]
pub(crate) mod child;
#[path = "../../real_support/events.rs"]
pub(crate) mod events;
#[path = "../../real_support/patient.rs"]
pub(crate) mod patient;
#[path = "../../real_support/raw.rs"]
pub(crate) mod raw;
#[path = "../../real_support/storage.rs"]
pub(crate) mod storage;
#[path = "../../real_support/wait.rs"]
pub(crate) mod wait;
