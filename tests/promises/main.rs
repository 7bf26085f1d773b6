//! What is promised, in virtual time: one thread, a clock that tests move, and a store that fails
//! when a test wants it to. Rules that both stores share run on a private server too.

mod support;

mod p10_a_call_ends;
mod p10_outage;
mod p1_one_believer;
mod p2_fences_grow;
mod p3_reentry;
mod p4_twice_is_once;
mod p5_loss_is_told;
mod p6_unknown_is_not_lost;
mod p7_first_come;
mod p8_nothing_holds_for_long;
mod p9_nothing_leaks;

mod all;
mod bad_input;
mod blocked;
mod body_causes;
mod corners;
mod debug_is_short;
mod health;
mod list;
mod metrics;
mod metrics_late_recorder;
mod min_hold;
mod once;
mod panicking_subscriber;
mod parts;
mod paused_clock;
mod read_write;
mod self_wait;
mod send_sync;
mod spans;
mod turns;
mod wait_graph;
