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

/// One of the values of a round.
pub(crate) type Value = fn(&Round) -> f64;

impl Round {
    /// A round in which acquires alone were measured.
    pub(crate) fn of_waits([p50, p99]: [f64; 2]) -> Self {
        let [acquired, handed, commands, client_micros, handed_p99] = [f64::NAN; 5];
        Self { acquired, handed, commands, client_micros, p50, p99, handed_p99 }
    }
}
