//! The wake-up lane: one connection on which a runtime hears what the store tells it unasked.

mod backoff;
mod ear;
mod subscriber;
mod subscriptions;

pub(super) use subscriptions::Subscriptions;
