//! The gate on object stores: the crate's store in memory, its local files, and stores that lack
//! something.

mod advance;
mod names;
mod racing;
mod random;
mod rule;
mod s3;
pub(crate) mod steered;
mod stores;
mod words;
