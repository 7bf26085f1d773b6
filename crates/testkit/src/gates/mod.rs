//! What every gate must do, as one suite: the cases are the same, only the storages differ.
//!
//! A [`GateSubject`] is a gate and its storage; a [`Faults`] lets things go wrong between the two;
//! a [`Scene`] is a subject with the words of one case. [`gate_suite!`](crate::gate_suite) makes a
//! test of every case for a subject,
//! [`gate_suite_without_faults!`](crate::gate_suite_without_faults) of those for a subject that has
//! no faults, [`GATE_CASES`] lists them.

mod behind_relay;
mod cases;
mod names;
mod outcome;
mod relay;
mod scene;
mod subject;
mod table;

pub use behind_relay::BehindRelay;
pub use names::{HOSTILE_NAMES, hostile_names};
pub use outcome::Outcome;
pub use relay::{Relay, Upstream};
pub use scene::{Scene, stamp};
pub use subject::{Faults, GateSubject};
pub use table::{GATE_CASES, GateCase, assert_without_faults, run};
