use std::sync::Weak;

use leasehold_core::{Instant, store::Listener};

use super::letter::Lane;

/// One process's end of the wire.
#[derive(Default)]
pub(super) struct End {
    /// Those to each server.
    pub(super) lanes: Vec<[Connection; Lane::ALL]>,
    pub(super) pushes_until: Instant,
    pub(super) dead: bool,
    pub(super) cut_until: Instant,
    pub(super) misled_until: Instant,
    pub(super) listener: Option<Weak<dyn Listener>>,
    /// The server that it listens at.
    pub(super) subscribed: Option<usize>,
}

/// What is known of a connection: nothing on it overtakes.
#[derive(Debug, Default, Clone, Copy)]
pub(super) struct Connection {
    pub(super) epoch: u64,
    /// Of connections before this one nothing comes any more: they broke. One that was only
    /// replaced still delivers answers to those who wait for them.
    pub(super) broken_before: u64,
    /// Nothing that is sent on it arrives.
    pub(super) mute: bool,
    pub(super) there_until: Instant,
    pub(super) back_until: Instant,
}
