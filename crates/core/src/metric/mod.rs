//! Metrics through the `metrics` facade: names, descriptions, buckets and the series of a class.
//!
//! Nothing is allocated while no recorder is installed, and a recorder that is installed late
//! sees everything from then on: keys are built once, handles are not kept.

mod describe;
mod emit;
pub mod names;
mod registry;
mod series;
mod since;

pub use describe::{buckets, describe_metrics};
pub use registry::Metrics;
pub use series::{
    AcquireOutcome, ClassMetrics, GateMetrics, HoldEnd, KeptOutcome, ReleaseOutcome, ReleaseVia,
    RenewalOutcome, StoreMetrics, WakeSource,
};
pub use since::Lasting;
