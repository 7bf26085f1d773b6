//! P10, a call ends when it says: an acquire with wait d answers within d and the 250 ms of the look
//! at the holder, whatever the server, the network or the executor did; a try, a release and `with`
//! within one command timeout. What the server has not confirmed by then, the runtime goes on
//! telling it.

#[path = "p10_a_call_ends/company.rs"]
mod company;
#[path = "p10_a_call_ends/drain.rs"]
mod drain;
#[path = "p10_a_call_ends/mute.rs"]
mod mute;
#[path = "p10_a_call_ends/once.rs"]
mod once;
#[path = "p10_a_call_ends/release.rs"]
mod release;
#[path = "p10_a_call_ends/slow.rs"]
mod slow;
#[path = "p10_a_call_ends/starved.rs"]
mod starved;
#[path = "p10_a_call_ends/tries.rs"]
mod tries;
mod virtual_support;
#[path = "p10_a_call_ends/wakers.rs"]
mod wakers;
#[path = "p10_a_call_ends/with.rs"]
mod with;
