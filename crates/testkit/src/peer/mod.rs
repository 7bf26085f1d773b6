//! A server that says what a test tells it to, for those that cannot be had here.

mod reply;
mod request;
mod scripted_peer;

pub use reply::Reply;
pub use scripted_peer::ScriptedPeer;
