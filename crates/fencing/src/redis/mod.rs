//! The gate on a Redis server: its watermarks, its scripts, and their answers.

mod gate;
mod reply;
mod resource;
mod script;

pub use gate::RedisGate;
pub use script::FencedScript;
