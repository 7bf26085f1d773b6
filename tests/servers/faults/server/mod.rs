//! Servers that stand still, refuse, forget and come back.

mod busy_script;
mod eviction;
mod flushall;
mod flushall_in_a_turn;
mod force_release_in_a_turn;
mod idle_flushall;
mod idle_server_restarted;
mod loading;
mod max_clients;
mod misconf;
mod no_replicas;
mod noscript;
mod out_of_memory;
mod paused_after_a_grant;
mod readonly;
mod renewals_without_connection;
mod restart_with_data;
mod restart_without_data;
mod server_paused;
mod server_shutdown;
mod slow_server;
mod stale_snapshot;

mod forgotten_turn;
mod mid_turn;
pub(super) mod plain_counter;
mod refusal;
pub(super) mod scene;
pub(super) mod two_believers;
