//! Metrics through the `metrics` facade: names, descriptions, buckets and the series of a class.
//!
//! Nothing is allocated while no recorder is installed, and a recorder that is installed late
//! sees everything from then on: keys are built once, handles are not kept.

mod labels;
pub mod names;
mod record;
mod series;
mod since;

pub use labels::{
    AcquireOutcome, HoldEnd, KeptOutcome, MessageOutcome, ReleaseOutcome, ReleaseVia,
    RenewalOutcome, WakeSource,
};
pub use series::{ClassMetrics, GateMetrics, Metrics, StoreMetrics, buckets, describe_metrics};
pub use since::Lasting;
