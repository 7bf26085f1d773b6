//! One call that acquires a lock: it enters what its owner has, or stands in line until it gets a
//! lease or gives up.

mod call;
mod end;
mod line;
mod outage_patience;
mod suspicion;

pub(crate) use end::{failed, unavailable};
pub(crate) use line::{AcquireCall, WaitLimit};
