//! Metrics through the `metrics` facade: names, descriptions, buckets and the series of a class.
//!
//! Nothing is allocated while no recorder is installed, and a recorder that is installed late
//! sees everything from then on: keys are built once, handles are not kept.

pub mod names;
mod series;
mod since;

pub use series::{
    AcquireOutcome, ClassMetrics, GateMetrics, HoldEnd, KeptOutcome, MessageOutcome, Metrics,
    ReleaseOutcome, ReleaseVia, RenewalOutcome, StoreMetrics, WakeSource, buckets,
    describe_metrics,
};
pub use since::Lasting;
