//! The masters of a Cluster: which of them owns a name, and what their redirections mean.

mod course;
mod look;
mod masters;
mod owners;
mod redirect;
mod slot;
mod store;
mod topology;
mod view;
mod way;

pub use course::{Course, Learnt};
pub(super) use masters::{Master, masters};
pub use owners::Owners;
pub use redirect::Redirect;
pub(super) use redirect::is_elsewhere;
pub use slot::{slot_of, slot_of_lock};
pub use store::ClusterStore;
pub(super) use store::probe_in;
pub(super) use topology::Topology;
pub use view::{Heard, View};
