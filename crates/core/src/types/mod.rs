//! The values of the protocol: names, ids, fences and times, each validated when it is made.

mod acquisition;
mod class;
mod fence;
mod label;
mod name;
mod namespace;
mod setting;
mod stamp;
mod text;
mod ttl;

pub use acquisition::{AcquisitionId, AcquisitionIdError, RuntimeId};
pub use class::Class;
pub use fence::{FenceToken, FenceTokenError};
pub use label::RuntimeLabel;
pub use name::{KnownHash, LockName, NameError, NameMap};
pub use namespace::Namespace;
pub use setting::SettingError;
pub use stamp::{Stamp, StampError};
pub use ttl::Ttl;
