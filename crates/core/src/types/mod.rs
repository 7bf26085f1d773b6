//! The values of the protocol: names, ids, fences and times, each validated when it is made.

mod acquisition;
mod fence;
mod name;
mod setting;
mod stamp;
mod ttl;
mod words;

pub use acquisition::{AcquisitionId, AcquisitionIdError, RuntimeId};
pub use fence::{FenceToken, FenceTokenError};
pub use name::{KnownHash, LockName, NameError, NameMap};
pub use setting::SettingError;
pub use stamp::{Stamp, StampError};
pub use ttl::Ttl;
pub use words::{Class, Namespace, RuntimeLabel};
