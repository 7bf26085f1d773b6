use super::core::Engine;

/// How much a runtime keeps in memory; everything shrinks when names go idle.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[non_exhaustive]
pub struct Footprint {
    /// Leases and acquires on their way that the watchdog watches.
    pub watched: usize,
    /// Releases and withdrawals that the server has not confirmed yet.
    pub pending: usize,
    /// Names whose last fence is remembered; idle ones are forgotten within 20 minutes of use of
    /// the runtime.
    pub watermarks: usize,
}

impl Engine {
    /// Counts what is kept.
    pub fn footprint(&self) -> Footprint {
        Footprint {
            watched: self.watchdog.watched(),
            pending: self.reaper.pending(),
            watermarks: self.watermarks.len(),
        }
    }
}
