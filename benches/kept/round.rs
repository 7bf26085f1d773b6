use crate::table::Column;

/// What one round of a subject measured; not a number where it was not measured.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Round {
    /// Acquisitions per second, each with its release.
    pub(crate) acquired: f64,
    /// Acquisitions per second by another process than the one before.
    pub(crate) handed: f64,
    /// Commands that clients sent, per acquisition.
    pub(crate) commands: f64,
    /// Processor time of all clients per acquisition, in microseconds.
    pub(crate) client_micros: f64,
    /// How long an acquire takes, in microseconds: the median.
    pub(crate) p50: f64,
    /// How long an acquire takes, in microseconds: 99 of 100 take no longer.
    pub(crate) p99: f64,
    /// The same of acquisitions by another process than the one before.
    pub(crate) handed_p99: f64,
}

/// The columns of a round's values.
pub(crate) const COLUMNS: &[Column] = &[
    ("acquired/s", "acquired_per_second", 0),
    ("handed/s", "handed_per_second", 0),
    ("cmd", "cmd", 4),
    ("CPU µs", "cpu_us", 2),
    ("p50 µs", "p50_us", 1),
    ("p99 µs", "p99_us", 1),
    ("handed p99 µs", "handed_p99_us", 1),
];

impl Round {
    /// A value for each column.
    pub(crate) fn values(&self) -> Vec<f64> {
        let Self { acquired, handed, commands, client_micros, p50, p99, handed_p99 } = *self;
        vec![acquired, handed, commands, client_micros, p50, p99, handed_p99]
    }

    /// A round in which acquires alone were measured.
    pub(crate) fn of_waits([p50, p99]: [f64; 2]) -> Self {
        let [acquired, handed, commands, client_micros, handed_p99] = [f64::NAN; 5];
        Self { acquired, handed, commands, client_micros, p50, p99, handed_p99 }
    }
}
