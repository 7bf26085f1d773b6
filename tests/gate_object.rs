//! The gate on object stores: the crate's store in memory, its local files, and stores that lack something.

#![cfg(feature = "object-store")]

#[path = "gate_object/advance.rs"]
mod advance;
#[path = "gate_object/names.rs"]
mod names;
#[path = "gate_object/racing.rs"]
mod racing;
#[path = "gate_object/random.rs"]
mod random;
#[path = "gate_object/rule.rs"]
mod rule;
#[path = "gate_object/s3.rs"]
mod s3;
#[path = "s3_support/mod.rs"]
mod s3_support;
#[path = "gate_object/steered.rs"]
mod steered;
#[path = "gate_object/stores.rs"]
mod stores;
#[path = "gate_object/words.rs"]
mod words;
