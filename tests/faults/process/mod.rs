//! Processes that stand still, stall and end.

mod paused;
