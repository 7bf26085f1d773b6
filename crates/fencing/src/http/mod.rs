//! The gate before an HTTP service: what a client sends, and the layer that refuses stale fences.
//!
//! A client puts the stamp of its lease on each request with [`put_stamp`]. The server wraps what
//! writes in a [`FenceLayer`].
//!
//! A layer that only compares is a trap: 5 is admitted and slow, 6 is admitted and writes, then 5
//! writes. This one holds the resource until the service behind it has answered, and a newer fence
//! waits for that. It knows the requests of its own process; with several, the storage behind them
//! has to compare as well, by the [`Fenced`] that the handler finds in the request's extensions.

mod answer;
mod fenced;
mod headers;
mod json;
mod lane;
mod lanes;
mod layer;
mod name;
mod problem;
mod service;
#[cfg(test)]
mod tests;

pub use answer::FencedBody;
pub use fenced::Fenced;
pub use headers::{FENCE, HeaderError, LEASE, put_stamp, read_stamp};
pub use layer::FenceLayer;
pub use name::{NameFuture, Unnamed};
pub use problem::Problem;
pub use service::{FenceFuture, FenceService};
