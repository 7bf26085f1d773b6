use std::{fmt, str::FromStr};

use super::{AcquisitionId, Fence, printable::beginning};

/// What a writer presents to a gate: the fence of its lease, and the lease's id.
///
/// The fence alone would let two holders pass as one if a server that lost data ever granted the
/// same fence twice. As text it is `<fence> <runtime-uuid>:<number>`.
///
/// # Examples
///
/// ```
/// # #[tokio::main(flavor = "current_thread")]
/// # async fn main() -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::{LockRuntime, Stamp};
///
/// let locks = LockRuntime::embedded()?;
/// let guard = locks.lock("orders/42")?.acquire().await?;
/// let text = guard.stamp().to_string(); // for a column, a header, a message
/// assert_eq!(text.parse::<Stamp>()?, guard.stamp());
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
// ADR 0008
pub struct Stamp {
    /// The fence that came with the lease.
    pub fence: Fence,
    /// The id of the lease.
    pub lease: AcquisitionId,
}

impl Stamp {
    /// Joins a lease's fence and id.
    pub fn new(fence: Fence, lease: AcquisitionId) -> Self {
        Self { fence, lease }
    }
}

impl fmt::Display for Stamp {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} {}", self.fence, self.lease)
    }
}

impl FromStr for Stamp {
    type Err = StampError;

    fn from_str(text: &str) -> Result<Self, Self::Err> {
        let error = || StampError { text: beginning(text) };
        let (fence, lease) = text.split_once(' ').ok_or_else(error)?;
        let fence = fence.parse().map_err(|_| error())?;
        let lease = lease.parse().map_err(|_| error())?;
        Ok(Self { fence, lease })
    }
}

/// A text that is not `<fence> <runtime-uuid>:<number>`.
#[derive(Debug, Clone, PartialEq, Eq, thiserror::Error)]
#[error("{text:?} is not the stamp of a lease; expected <fence> <runtime-uuid>:<number>")]
pub struct StampError {
    text: String,
}

#[cfg(test)]
mod tests {
    use uuid::Uuid;

    use super::*;
    use crate::types::RuntimeId;

    /// The stamp of lease `lease` with a fence.
    fn stamp(fence: u64, lease: u64) -> Stamp {
        let lease = AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), lease);
        Stamp::new(Fence::try_from(fence).unwrap(), lease)
    }

    #[test]
    fn a_stamp_reads_back_what_it_writes() {
        let greatest = stamp(Fence::MAX, 3);
        assert_eq!(greatest.to_string(), "9007199254740991 00000000-0000-0000-0000-000000000007:3");
        assert_eq!(greatest.to_string().parse(), Ok(greatest));
        for text in ["", "41", "41 x:1", "0 00000000-0000-0000-0000-000000000007:3"] {
            assert!(text.parse::<Stamp>().is_err(), "{text}");
        }
    }
}
