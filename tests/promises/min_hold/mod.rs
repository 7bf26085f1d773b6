//! `min_hold`: however a lease ends, its lock stays closed until its minimum is over, and no
//! longer; in virtual time to the millisecond, and on a private server by its own time to live.

mod control;
mod ends;
mod exact;
mod lost_replies;
mod waiting;
