//! What the locks of one runtime share: the store, the watchdog, the reaper, and memory of fences.

mod attempt;
mod backoff;
mod cleanup;
mod core;
mod executor;
mod footprint;
mod job;
mod reaper;
mod shutdown;
mod timing;
mod watermarks;

pub(crate) use attempt::{Attempt, ClaimWatch, Tried};
pub(crate) use cleanup::Cleanup;
pub(crate) use job::{Job, Task};

pub use self::core::{Engine, EngineParts};
pub use executor::Executor;
pub use footprint::Footprint;
pub use shutdown::ShutdownReport;
pub use timing::{Timing, TimingError};
