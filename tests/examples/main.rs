//! The examples that need nothing but Rust, as programs: they end well, and name what is wrong.

mod jobs;
mod order_pipeline;
mod program;
