//! `leasehold top`: a live view of locks, processes and possible cycles.

mod changes;
mod looks;
mod model;
#[cfg(test)]
mod tests;
mod view;
mod watch;

pub(crate) use watch::top;
