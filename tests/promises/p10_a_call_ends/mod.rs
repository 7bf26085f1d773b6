//! P10, a call ends when it says: an acquire with wait d answers within d and the 250 ms of the
//! look at the holder, whatever the server, the network or the executor did; a try, a release and
//! `with` within one command timeout. What the server has not confirmed by then, the runtime goes
//! on telling it.

mod company;
mod drain;
mod mute;
mod once;
mod release;
mod slow;
mod starved;
mod tries;
mod wakers;
mod with;
mod withdrawn;
