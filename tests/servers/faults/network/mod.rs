//! Messages that are lost, late, doubled and torn, connections that break, and a server out of
//! reach.

mod balanced_masters;
mod beside;
mod connection_refused;
mod connection_reset;
mod half_open;
mod idle_cut;
mod idle_cut_job;
mod idle_cut_once;
mod idle_holder_cut_off;
mod idling;
mod late_duplicate_acquire;
mod late_duplicate_release;
mod late_reply;
mod naive;
mod net;
mod pushes_lost;
mod recall_lost;
mod reconnect_storm;
mod reply_lost;
mod request_lost;
mod subscriber_killed;
mod subscriber_lagging;
#[cfg(feature = "tls")]
mod tls_broken;
mod torn_frames;
mod ttl_below_round_trip;
