//! The values of the protocol: names, ids, fences and times, each validated when it is made.

mod name;
mod pattern;
mod replication;
mod stamp;
mod ttl;
mod words;

pub use name::{KnownHash, LockName, NameError, NameMap};
pub use pattern::NamePattern;
pub use replication::{Acks, Replication, Terms};
pub use stamp::{
    AcquisitionId, AcquisitionIdError, FenceToken, FenceTokenError, RuntimeId, Stamp, StampError,
};
pub use ttl::{SettingError, Ttl};
pub use words::{Class, Namespace, RuntimeLabel};
