/// Buckets for [`ACQUIRE_WAIT_SECONDS`](super::names::ACQUIRE_WAIT_SECONDS), in seconds.
pub const WAIT_BUCKETS: [f64; 18] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0,
];

/// Buckets for [`HOLD_SECONDS`](super::names::HOLD_SECONDS), in seconds.
pub const HOLD_BUCKETS: [f64; 22] = [
    0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0, 20.0, 30.0,
    45.0, 60.0, 120.0, 300.0, 600.0, 1800.0,
];

/// Buckets for [`RENEWAL_SECONDS`](super::names::RENEWAL_SECONDS),
/// [`RENEWAL_LAG_SECONDS`](super::names::RENEWAL_LAG_SECONDS) and
/// [`RENEWAL_MARGIN_SECONDS`](super::names::RENEWAL_MARGIN_SECONDS), in seconds.
pub const RENEWAL_BUCKETS: [f64; 19] = [
    0.0005, 0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1.0, 2.5, 5.0, 10.0, 15.0,
    20.0, 30.0, 45.0, 60.0,
];

/// Buckets for [`RENEWAL_MARGIN_RATIO`](super::names::RENEWAL_MARGIN_RATIO).
pub const RATIO_BUCKETS: [f64; 12] =
    [0.02, 0.05, 0.1, 0.15, 0.2, 0.25, 0.3, 0.4, 0.5, 0.6, 0.7, 1.0];

/// Buckets for [`HANDOVER_SECONDS`](super::names::HANDOVER_SECONDS), in seconds.
pub const HANDOVER_BUCKETS: [f64; 13] = [
    0.000_001, 0.000_005, 0.000_01, 0.000_05, 0.000_1, 0.000_5, 0.001, 0.005, 0.01, 0.05, 0.1, 0.5,
    1.0,
];

/// Buckets for [`QUEUE_POSITION`](super::names::QUEUE_POSITION).
pub const POSITION_BUCKETS: [f64; 10] =
    [1.0, 2.0, 4.0, 8.0, 16.0, 32.0, 64.0, 256.0, 1024.0, 4096.0];

/// Buckets for [`TURN_LEASES`](super::names::TURN_LEASES).
pub const TURN_BUCKETS: [f64; 8] = [1.0, 2.0, 4.0, 8.0, 16.0, 64.0, 256.0, 1024.0];
