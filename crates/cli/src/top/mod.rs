//! `leasehold top`: a live view of locks, processes and cycles.

mod changes;
mod input;
mod looks;
mod model;
mod screen;
mod view;
mod watch;

pub(crate) use watch::top;
