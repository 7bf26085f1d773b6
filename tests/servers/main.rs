//! The same promises on real servers, between real processes that are stopped and killed.

mod support;

use support::matrix;

mod p10_a_call_ends;
mod p10_outage;
mod p4_cancelled;
mod p4_twice_is_once;
mod p5_loss_is_told;
mod p6_unknown_is_not_lost;
mod p7_crowd;
mod p7_first_come;
mod p7_handover;
mod p7_stopped_waiter;
mod p9_nothing_leaks;

mod chaos;
mod cluster;
mod connect;
mod diagnosis;
mod documented_rights;
mod everywhere;
mod failovers;
mod faults;
mod forked_calls;
mod health;
mod list;
mod longest_times;
mod main_returns;
mod once;
mod ours;
mod own_thread;
mod paused_clock;
#[cfg(feature = "postgres")]
mod postgres_gate;
mod quorum;
mod quorum_rounds;
mod replication;
mod sentinel;
mod stopped_holder;
