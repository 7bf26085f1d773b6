//! The masters of a Cluster: which of them owns a name, and what their redirections mean.

mod choice;
mod course;
mod impostors;
mod look;
mod masters;
mod members;
mod owners;
mod redirect;
mod slot;
mod store;
mod topology;
mod view;
mod way;

pub use choice::{Choice, Look, choose};
pub use course::{Course, Learnt};
pub(super) use masters::{Master, masters};
pub(super) use members::{Members, unknown_node};
pub use owners::Owners;
pub use redirect::Redirect;
pub(super) use redirect::is_elsewhere;
pub use slot::{slot_of, slot_of_lock};
pub use store::ClusterStore;
pub(super) use store::probe_in;
pub(super) use topology::Topology;
pub use view::View;
