//! The masters of a Cluster: which of them owns a name, and what their redirections mean.

mod attempts;
mod choice;
mod owners;
mod probe;
mod redirect;
mod slot;
mod store;
mod topology;
mod view;

pub use choice::{Choice, Probe, choose};
pub use owners::SlotOwners;
pub use probe::{ClusterMaster, masters};
pub(super) use redirect::is_elsewhere;
pub use redirect::{Learnt, Redirect, RedirectPolicy};
pub use slot::{slot_of, slot_of_lock};
pub use store::{ClusterStore, probe_in};
pub(super) use topology::ClusterTopology;
pub use topology::JOIN;
pub(super) use view::{KnownNodes, unknown_node};
pub use view::{ONE_EACH, View, shared};
