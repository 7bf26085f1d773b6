//! Metrics through the `metrics` facade: names, descriptions, buckets and the series of a class.
//!
//! Nothing is allocated while no recorder is installed, and a recorder that is installed late
//! sees everything from then on: keys are built once, handles are not kept.

mod buckets;
mod describe;
mod emit;
pub mod names;
mod registry;
mod series;
mod since;

pub use buckets::{
    HANDOVER_BUCKETS, HOLD_BUCKETS, POSITION_BUCKETS, RATIO_BUCKETS, RENEWAL_BUCKETS, TURN_BUCKETS,
    WAIT_BUCKETS,
};
pub use describe::describe_metrics;
pub use registry::Metrics;
pub use series::{
    AcquireOutcome, ClassMetrics, GateMetrics, HoldEnd, ReleaseOutcome, ReleaseVia, RenewalOutcome,
    StoreMetrics, WakeSource,
};
