//! Independent servers of which a majority grants: some are down, late, cut off, empty or wrong about
//! the time.

mod client_clocks_apart;
mod clocks_apart;
mod end_missed;
mod forged_at_one_node;
mod hanging_server;
mod holder_paused;
mod late_server;
mod majority_down;
mod old_snapshot;
mod one_of_three_down;
mod partition_splits;
mod replies_lost;
mod restarted_empty;
mod turned_persistent;
mod two_of_five_down;

mod down;
mod forgetful;
mod naive_quorum;
mod roles;
pub(crate) mod scene;
