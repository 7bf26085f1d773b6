//! The gate on a Redis server: its watermarks, its scripts, and their answers.

mod gate;
mod reply;
mod resource;

pub use gate::{FencedScript, RedisGate};
