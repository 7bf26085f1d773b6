//! The program under test, and a terminal for it.

mod program;
mod pty;

pub(crate) use program::{Finished, LIMIT, LOCK, Running, finished, leasehold, settled, value};
pub(crate) use pty::Terminal;
