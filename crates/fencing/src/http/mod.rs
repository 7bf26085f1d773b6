//! The gate before an HTTP service: the headers of a client, and the layer that refuses stale
//! fences.
//!
//! A client puts the stamp of its lease on each request with [`put_stamp`]. The server wraps the
//! services that write in a [`FenceLayer`].
//!
//! It would not be enough to compare fences: fence 5 is admitted and slow, fence 6 is admitted and
//! writes, then fence 5 writes. So the layer holds the resource until the service behind it has
//! answered, and a request with a newer fence waits for that answer. The layer orders the requests
//! of its own process only. If several processes write to one storage, the storage has to compare
//! as well, with the [`Fenced`] that the handler finds in the request's extensions.

mod answer;
mod body;
mod headers;
mod layer;
mod problem;
mod queues;
mod service;
#[cfg(test)]
mod tests;

pub use answer::Unnamed;
pub use body::FencedBody;
pub use headers::{HeaderError, put_stamp, read_stamp};
pub use layer::{FenceLayer, Fenced};
pub use problem::Problem;
pub use service::FenceService;
