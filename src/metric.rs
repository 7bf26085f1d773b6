//! Metrics of a runtime, through the `metrics` facade.
//!
//! Install any recorder, at any time. Give its histograms the bounds of [`buckets`].

pub use leasehold_core::metric::{buckets, describe_metrics};
