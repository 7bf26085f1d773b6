//! What can be seen from outside, through the `metrics` facade.
//!
//! Install any recorder, at any time. Histograms become useful with buckets:
//! [`WAIT_BUCKETS`] for waits, [`HOLD_BUCKETS`] for holds, [`RENEWAL_BUCKETS`] and
//! [`RATIO_BUCKETS`] for renewals,
//! [`HANDOVER_BUCKETS`], [`POSITION_BUCKETS`] and [`TURN_BUCKETS`] for what happens in line.

pub use leasehold_core::metric::{
    HANDOVER_BUCKETS, HOLD_BUCKETS, POSITION_BUCKETS, RATIO_BUCKETS, RENEWAL_BUCKETS, TURN_BUCKETS,
    WAIT_BUCKETS, describe_metrics, names,
};
