use std::{fmt, time::Duration};

use leasehold_core::{AcquisitionId, FenceToken};

/// Why a history cannot be one of a correct lock.
#[derive(Debug, Clone, PartialEq, Eq)]
pub enum Violation {
    /// Two leases have the same token.
    SharedToken {
        /// The token.
        fence: FenceToken,
        /// One lease.
        first: AcquisitionId,
        /// The other.
        second: AcquisitionId,
    },
    /// One lease has two tokens.
    TwoTokens {
        /// The lease.
        lease: AcquisitionId,
        /// One token.
        first: FenceToken,
        /// The other.
        second: FenceToken,
    },
    /// A lease was asked for after another was in its holder's hands, and has a lower token.
    TokenFell {
        /// The lease that was granted before.
        earlier: (AcquisitionId, FenceToken),
        /// The lease that was asked for after that.
        later: (AcquisitionId, FenceToken),
    },
    /// The storage accepted a lower token after a higher one.
    StaleWrite {
        /// The highest token that it had accepted.
        highest: FenceToken,
        /// The token that it accepted after that.
        accepted: FenceToken,
        /// The place in the storage's order.
        order: u64,
    },
    /// The storage accepted one token from two leases.
    SharedWrite {
        /// The token.
        fence: FenceToken,
        /// The lease that wrote first.
        first: AcquisitionId,
        /// The lease that wrote after it.
        second: AcquisitionId,
    },
    /// The counter does not show every increment that was accepted.
    LostUpdate {
        /// How many increments were accepted.
        accepted: u64,
        /// What the counter showed.
        found: u64,
    },
    /// Two leases were believed in at the same time; only where that must not be.
    TwoBelievers(Overlap),
}

/// A time in which two leases of the lock were believed in.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Overlap {
    /// The lease that was believed in first.
    pub first: AcquisitionId,
    /// The lease that came in between.
    pub second: AcquisitionId,
    /// For how long both were believed in.
    pub by: Duration,
}

impl fmt::Display for Violation {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::SharedToken { fence, first, second } => {
                write!(f, "leases {first} and {second} have the same token {fence}")
            }
            Self::TwoTokens { lease, first, second } => {
                write!(f, "lease {lease} has two tokens, {first} and {second}")
            }
            Self::TokenFell { earlier, later } => write!(
                f,
                "lease {} was asked for after {} was granted, and its token {} is below {}",
                later.0, earlier.0, later.1, earlier.1
            ),
            Self::StaleWrite { highest, accepted, order } => {
                write!(f, "write {order} with token {accepted} was accepted after {highest}")
            }
            Self::SharedWrite { fence, first, second } => {
                write!(f, "writes of leases {first} and {second} were accepted with token {fence}")
            }
            Self::LostUpdate { accepted, found } => {
                write!(f, "{accepted} increments were accepted and the counter shows {found}")
            }
            Self::TwoBelievers(Overlap { first, second, by }) => {
                write!(f, "leases {first} and {second} were both believed in for {by:?}")
            }
        }
    }
}
