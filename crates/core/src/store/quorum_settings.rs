use std::time::Duration;

use crate::types::{SettingError, Ttl};

/// How the nodes of a quorum are used; the same in every process that shares its locks.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
#[must_use = "settings do nothing themselves, give them to a builder or a configuration"]
pub struct QuorumSettings {
    longest_ttl: Duration,
    tolerance: Duration,
    node_timeout: Duration,
}

impl QuorumSettings {
    /// The longest ttl that any lock of the group uses, and the longest time that one is kept closed
    /// after its lease (`min_hold`, `once`), 100 ms to 24 h. A node that lost its data stays out for
    /// this time and twice the tolerance, and what would last longer is refused. Default: 60 s.
    ///
    /// # Errors
    ///
    /// [`SettingError`] when it is out of range.
    pub fn longest_ttl(self, ttl: Duration) -> Result<Self, SettingError> {
        SettingError::check("longest ttl of a quorum", ttl, Ttl::MIN..=Ttl::MAX)?;
        Ok(Self { longest_ttl: ttl, ..self })
    }

    /// How far the clocks of the nodes may be apart, 10 ms to 1 h. Beyond it a fence costs a second
    /// round trip, and stays right as long as no node loses its data. Default: 5 s.
    ///
    /// # Errors
    ///
    /// [`SettingError`] when it is out of range.
    pub fn tolerance(self, tolerance: Duration) -> Result<Self, SettingError> {
        let range = Duration::from_millis(10)..=Duration::from_secs(3600);
        SettingError::check("tolerance of a quorum", tolerance, range)?;
        Ok(Self { tolerance, ..self })
    }

    /// How long one node may take to answer one command, 10 ms to 1 min. Default: 500 ms.
    ///
    /// # Errors
    ///
    /// [`SettingError`] when it is out of range.
    pub fn node_timeout(self, timeout: Duration) -> Result<Self, SettingError> {
        let range = Duration::from_millis(10)..=Duration::from_secs(60);
        SettingError::check("timeout of a node", timeout, range)?;
        Ok(Self { node_timeout: timeout, ..self })
    }

    /// The longest ttl that a lock may have.
    pub fn most_ttl(&self) -> Duration {
        self.longest_ttl
    }

    /// The ttl of a lease whose own is not known: the default one, or the longest one below it.
    #[doc(hidden)]
    pub fn usual_ttl(&self) -> Ttl {
        Ttl::new(self.longest_ttl.min(Ttl::default().get())).unwrap_or_default()
    }

    /// How far clocks may be apart.
    pub fn clock_tolerance(&self) -> Duration {
        self.tolerance
    }

    /// How long a node may take.
    pub fn patience(&self) -> Duration {
        self.node_timeout
    }

    /// For how long a node stays out that lost its data: until no lease is left that it may have
    /// forgotten, and its clock has passed every fence that it accepted.
    pub fn stay_out(&self) -> Duration {
        self.longest_ttl + self.tolerance * 2
    }
}

impl Default for QuorumSettings {
    fn default() -> Self {
        Self {
            longest_ttl: Duration::from_secs(60),
            tolerance: Duration::from_secs(5),
            node_timeout: Duration::from_millis(500),
        }
    }
}
