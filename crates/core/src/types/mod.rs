//! The values of the protocol: names, ids, fences and times, each validated when it is made.

mod acquisition_id;
#[cfg(feature = "postgres")]
mod column;
mod duration_text;
mod fence;
mod mode;
mod name;
mod pattern;
mod printable;
mod replication;
mod stamp;
mod ttl;
mod words;

pub use acquisition_id::{AcquisitionId, AcquisitionIdError, RuntimeId, without_words};
pub use duration_text::duration;
pub use fence::{Fence, FenceError};
pub use mode::Mode;
pub use name::{KnownHash, LockName, NameError, NameMap};
pub use pattern::NamePattern;
pub use printable::{is_printable, printable};
pub use replication::{Replication, Terms};
pub use stamp::{Stamp, StampError};
pub use ttl::{SettingError, Ttl};
pub use words::{Class, Namespace, RuntimeLabel};
