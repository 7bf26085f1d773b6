//! One call that acquires a lock: it enters what its owner has, or stands in line until it gets a
//! lease or gives up.

mod call;
mod end;
mod in_line;

pub(crate) use call::{Patience, Wait};
