//! The words of the protocol as types, each validated once when it is made.

mod acquisition;
mod class;
mod fence;
mod label;
mod name;
mod namespace;
mod stamp;
mod ttl;

pub use acquisition::{AcquisitionId, AcquisitionIdError, RuntimeId};
pub use class::{Class, ClassError};
pub use fence::{FenceToken, FenceTokenError};
pub use label::RuntimeLabel;
pub use name::{LockName, NameError};
pub use namespace::{Namespace, NamespaceError};
pub use stamp::{Stamp, StampError};
pub use ttl::{Ttl, TtlError};
