use std::time::Duration;

/// How long acquires took.
#[derive(Debug, Default)]
pub(crate) struct Waits(Vec<u64>);

impl Waits {
    pub(crate) fn push(&mut self, wait: Duration) {
        self.0.push(u64::try_from(wait.as_nanos()).unwrap_or(u64::MAX));
    }

    /// How many there were.
    pub(crate) fn len(&self) -> usize {
        self.0.len()
    }

    /// Adds what another task waited.
    pub(crate) fn append(&mut self, mut waits: Self) {
        self.0.append(&mut waits.0);
    }

    /// In nanoseconds.
    pub(crate) fn into_nanos(self) -> Vec<u64> {
        self.0
    }

    /// The percentiles 50 and 99, in microseconds.
    pub(crate) fn percentiles(mut self) -> [f64; 2] {
        self.0.sort_unstable();
        [50, 99].map(|percent| {
            let at = self.0.len().saturating_sub(1) * percent / 100;
            self.0.get(at).map_or(f64::NAN, |nanos| float(*nanos) / 1e3)
        })
    }
}

/// Of nanoseconds.
impl FromIterator<u64> for Waits {
    fn from_iter<I: IntoIterator<Item = u64>>(nanos: I) -> Self {
        Self(nanos.into_iter().collect())
    }
}

#[expect(clippy::cast_precision_loss, reason = "waits are short")]
fn float(nanos: u64) -> f64 {
    nanos as f64
}
