//! The masters of a Cluster: which of them owns a name, and what their redirections mean.

mod look;
mod redirect;
mod slot;
mod store;
mod topology;
mod view;
mod way;

pub(super) use redirect::is_elsewhere;
pub use slot::slot_of;
pub use store::ClusterStore;
pub(super) use topology::Topology;
