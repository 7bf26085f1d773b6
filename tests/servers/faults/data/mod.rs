//! Keys, counters, names, rights and rooms for connections that are not as they should be.

mod channel_right_missing;
mod cluster_node;
mod corrupt_counter;
mod corrupt_lease;
mod corrupt_queue;
mod corrupt_watermark;
mod foreign_text;
mod forged_message;
mod herd;
mod herd_child;
mod holds_overflow;
mod name_collisions;
mod namespace_clash;
mod no_ttl_left_behind;
mod password_changed;
mod pool_exhausted;
mod rights_taken_away;
mod scene;
mod stale_fence_equal_token;
mod token_exhausted;
mod ttl_out_of_range;
mod watermark_in_same_redis_lost;
