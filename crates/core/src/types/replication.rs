use std::{fmt, time::Duration};

use super::{Mode, SettingError, Ttl};
use crate::durations::ACKNOWLEDGEMENTS;

/// How many copies of a grant must be acknowledged before a task believes it.
///
/// A failover may promote a replica that lacks the last writes of its master. A lease that was
/// acknowledged by the replica that is promoted survives the failover; so does each of its
/// renewals. Fewer acknowledgements than asked for are a failed acquire, also when the master sees
/// no replica at all. The guide *topologies* says which one fits, and what it costs.
///
/// See `WAIT` and `WAITAOF` in the documentation of Redis.
///
/// ```
/// # use {leasehold::redis::Replication, std::time::Duration};
/// let replication = Replication::wait(1, Duration::from_millis(500))?;
/// # Ok::<(), leasehold::error::SettingError>(())
/// ```
// In two bytes: very many leases are held. From the highest bit: whether disks count (1), replicas
// (5), timeout in steps of 10 ms (10).
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Replication(u16);

const AOF: u16 = 1 << 15;
const REPLICAS_AT: u16 = 10;
const MAX_REPLICAS: u8 = 31;
const STEPS: u16 = (1 << REPLICAS_AT) - 1;

impl Replication {
    /// The master's answer is enough, which is the default.
    pub const NONE: Self = Self(0);

    /// Asks that so many replicas have the write in memory (`WAIT`): 1 to 31.
    ///
    /// A command waits for them for at most `timeout`: 10 ms to 10 s, rounded up to 10 ms; and at
    /// most three quarters of the time that the command has: by default 1.5 s for an acquire, and
    /// 0.75 s to confirm a grant that came by a message.
    ///
    /// # Errors
    ///
    /// [`SettingError`] when the replicas or the timeout are out of range.
    pub fn wait(replicas: u8, timeout: Duration) -> Result<Self, SettingError> {
        Self::checked(0, replicas, timeout)
    }

    /// Asks that the master has the write on its disk, and so have 0 to 31 replicas (`WAITAOF`, Redis
    /// 7.2 or newer with `appendonly yes`). With `appendfsync everysec` that takes up to a second.
    ///
    /// The timeout is as for [`wait`](Self::wait).
    ///
    /// # Errors
    ///
    /// [`SettingError`] when the replicas or the timeout are out of range.
    pub fn wait_aof(replicas: u8, timeout: Duration) -> Result<Self, SettingError> {
        Self::checked(AOF, replicas, timeout)
    }

    fn checked(flag: u16, replicas: u8, timeout: Duration) -> Result<Self, SettingError> {
        // The disk of the master is enough by itself.
        let least = u8::from(flag != AOF);
        SettingError::check("number of replicas", replicas, least..=MAX_REPLICAS)?;
        let timeout = SettingError::check("replication timeout", timeout, ACKNOWLEDGEMENTS)?;
        let steps = timeout.as_nanos().div_ceil(ACKNOWLEDGEMENTS.start().as_nanos());
        let steps = u16::try_from(steps).unwrap_or(STEPS);
        Ok(Self(flag | u16::from(replicas) << REPLICAS_AT | steps))
    }

    /// Returns whether any acknowledgement is asked for.
    pub fn are_asked(self) -> bool {
        self != Self::NONE
    }

    /// Returns whether the write has to be on disks.
    pub fn on_disk(self) -> bool {
        self.0 & AOF != 0
    }

    /// Returns how many replicas have to acknowledge.
    pub fn replicas(self) -> u8 {
        u8::try_from(self.0 >> REPLICAS_AT).unwrap_or(u8::MAX) & MAX_REPLICAS
    }

    /// The same without replicas, and with the shortest timeout: to find out whether a server can
    /// wait at all.
    #[doc(hidden)]
    #[must_use]
    pub fn without_replicas(self) -> Self {
        if self.are_asked() { Self(self.0 & AOF | 1) } else { self }
    }

    /// Returns how long a command waits for them.
    pub fn timeout(self) -> Duration {
        *ACKNOWLEDGEMENTS.start() * u32::from(self.0 & STEPS)
    }
}

impl fmt::Display for Replication {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let replicas = self.replicas();
        let plural = if replicas == 1 { "" } else { "s" };
        match (self.are_asked(), self.on_disk()) {
            (false, _) => f.write_str("no acknowledgement"),
            (true, false) => write!(f, "{replicas} replica{plural}"),
            (true, true) if replicas == 0 => f.write_str("the master's disk"),
            (true, true) => write!(f, "the disks of the master and {replicas} replica{plural}"),
        }
    }
}

/// What a task asks of its lease.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Default)]
pub struct Terms {
    /// How long it lives without renewal.
    pub ttl: Ttl,
    /// Which acknowledgements its grant and its renewals need.
    pub acks: Replication,
    /// Whether it is to write, or to read with others.
    pub mode: Mode,
}

impl Terms {
    /// A ttl, to write, and no acknowledgement.
    pub fn without_acks(ttl: Ttl) -> Self {
        Self { ttl, acks: Replication::NONE, mode: Mode::Write }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn wait(replicas: u8, millis: u64) -> Result<Replication, SettingError> {
        Replication::wait(replicas, Duration::from_millis(millis))
    }

    fn on_disk(replicas: u8, millis: u64) -> Result<Replication, SettingError> {
        Replication::wait_aof(replicas, Duration::from_millis(millis))
    }

    #[test]
    fn what_is_asked_for_is_kept() {
        for (asked, aof, replicas, millis) in [
            (wait(1, 10), false, 1, 10),
            (wait(31, 10_000), false, 31, 10_000),
            (wait(2, 501), false, 2, 510),
            (on_disk(0, 500), true, 0, 500),
            (on_disk(31, 10_000), true, 31, 10_000),
        ] {
            let asked = asked.unwrap();
            assert!(asked.are_asked());
            assert_eq!(
                (asked.on_disk(), asked.replicas(), asked.timeout()),
                (aof, replicas, Duration::from_millis(millis)),
                "{asked:?}"
            );
        }
        assert!(!Replication::NONE.are_asked());
    }

    #[test]
    fn what_is_out_of_range_is_refused() {
        for asked in [wait(0, 100), wait(32, 100), wait(1, 9), wait(1, 10_001), on_disk(1, 0)] {
            assert!(asked.is_err(), "{asked:?}");
        }
    }
}
