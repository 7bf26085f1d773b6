//! What the locks of one runtime share: the store, the watchdog, the reaper, and memory of fences.

mod backoff;
mod cleanup;
mod core;
mod drain;
mod executor;
mod footprint;
mod home_clock;
mod job;
mod outage;
mod reaper;
mod shutdown;
mod timing;
mod watermarks;

pub(crate) use backoff::Backoff;
pub(crate) use cleanup::Cleanup;
pub(crate) use job::{Job, Task, Told, TurnEnd};
pub(crate) use reaper::{Announced, Reaper};
pub(crate) use watermarks::Watermarks;

pub use self::core::{Engine, EngineParts};
pub use executor::Executor;
pub use footprint::Footprint;
pub use shutdown::ShutdownReport;
pub use timing::{Timing, TimingError};
