//! One call that acquires a lock: it enters what its owner has, or stands in line until it gets a
//! lease or gives up.

mod call;
mod end;
mod in_line;
mod own;
mod patience;
mod report;
mod tally;
mod timer;

pub(crate) use call::Wait;
pub(crate) use patience::Patience;

use tally::Tally;
