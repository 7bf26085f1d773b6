//! The values of the protocol: names, ids, fences and times, each validated when it is made.

#[cfg(feature = "postgres")]
mod column;
mod duration_text;
mod name;
mod pattern;
mod printable;
mod replication;
mod stamp;
mod ttl;
mod words;

pub use duration_text::duration;
pub use name::{KnownHash, LockName, NameError, NameMap};
pub use pattern::NamePattern;
pub use printable::{is_printable, printable};
pub use replication::{Replication, Terms};
pub use stamp::{
    AcquisitionId, AcquisitionIdError, Fence, FenceError, RuntimeId, Stamp, StampError,
    without_words,
};
pub use ttl::{SettingError, Ttl};
pub use words::{Class, Namespace, RuntimeLabel};
