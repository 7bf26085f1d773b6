use super::core::Engine;

/// How much a runtime keeps in memory; everything shrinks when names go idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Footprint {
    /// Turns that the watchdog watches: locks that this runtime holds.
    pub watched: usize,
    /// Names that tasks of this runtime hold or wait for.
    pub names: usize,
    /// Tasks that wait for a lock.
    pub waiting: usize,
    /// Releases and withdrawals that the server has not confirmed yet.
    pub pending: usize,
    /// Names whose last fence is remembered; idle ones are forgotten within 20 minutes of use of
    /// the runtime.
    pub watermarks: usize,
}

impl Engine {
    /// Counts what is kept.
    pub fn footprint(&self) -> Footprint {
        let (names, waiting) = self.cohorts.count();
        Footprint {
            watched: self.cohorts.shared.watches.watched(),
            names,
            waiting,
            pending: self.reaper.pending(),
            watermarks: self.cohorts.shared.watermarks.len(),
        }
    }
}
