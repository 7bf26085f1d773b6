//! The subscription of a runtime: one connection that brings what the server pushes.

mod backoff;
mod subscriber;
mod subscriptions;

pub(super) use subscriptions::Subscriptions;
