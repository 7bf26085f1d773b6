//! Time: the clock that tests replace.

pub use leasehold_core::{Clock, Instant, SystemClock, TokioClock};
