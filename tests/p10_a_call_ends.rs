//! P10, a call ends when it says: what the server has not confirmed by then, the runtime goes on
//! telling it.

#[path = "p10_a_call_ends/drain.rs"]
mod drain;
#[path = "p10_a_call_ends/once.rs"]
mod once;
#[path = "p10_a_call_ends/release.rs"]
mod release;
mod virtual_support;
#[path = "p10_a_call_ends/with.rs"]
mod with;
