//! `hold_at_least`: however a lease ends, its lock stays closed until its minimum is over, and no
//! longer; in virtual time to the millisecond, and on a private server by its own time to live.

#[path = "hold_at_least/control.rs"]
mod control;
#[path = "hold_at_least/ends.rs"]
mod ends;
#[path = "hold_at_least/exact.rs"]
mod exact;
#[path = "hold_at_least/lost_replies.rs"]
mod lost_replies;
mod virtual_support;
#[path = "hold_at_least/waiting.rs"]
mod waiting;
