/// Buckets for [`ACQUIRE_WAIT_SECONDS`](super::names::ACQUIRE_WAIT_SECONDS), in seconds.
pub const WAIT_BUCKETS: [f64; 15] =
    [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0];

/// Buckets for [`HOLD_SECONDS`](super::names::HOLD_SECONDS), in seconds.
pub const HOLD_BUCKETS: [f64; 19] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0, 60.0,
    120.0, 300.0, 600.0, 1800.0,
];

/// Buckets for [`RENEWAL_SECONDS`](super::names::RENEWAL_SECONDS),
/// [`RENEWAL_LAG_SECONDS`](super::names::RENEWAL_LAG_SECONDS) and
/// [`RENEWAL_MARGIN_SECONDS`](super::names::RENEWAL_MARGIN_SECONDS), in seconds.
pub const RENEWAL_BUCKETS: [f64; 15] =
    [0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 30.0];
