//! What can be seen from outside, through the `metrics` facade.
//!
//! Install any recorder, at any time. Histograms become useful with buckets:
//! [`WAIT_BUCKETS`] for waits, [`HOLD_BUCKETS`] for holds, [`RENEWAL_BUCKETS`] for renewals.

pub use leasehold_core::metric::{
    HOLD_BUCKETS, RENEWAL_BUCKETS, WAIT_BUCKETS, describe_metrics, names,
};
