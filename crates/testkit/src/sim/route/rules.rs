use leasehold_core::{Replication, StoreError};
use leasehold_redis::{
    Endpoint, MasterVerdict, decide,
    seam::{Choice, Probe, Redirect, SlotOwners, View, acknowledged, choose},
};
use redis::Value;

/// The decisions by which a process finds the server of a lock; the real ones by default.
#[derive(Debug, Clone, Copy)]
pub struct Rules {
    /// Where the master is, by what the Sentinels answer, how many there are, and where it was.
    pub decide:
        fn(answers: &[Option<Endpoint>], listed: usize, last: Option<&Endpoint>) -> MasterVerdict,
    /// Whether a connection is used, by whether it was made to the master that is known now.
    pub is_fresh: fn(is_of_this_master: bool) -> bool,
    /// Which write replicas have to have, by the last one of the connection that waits.
    pub waits_for: fn(own: u64) -> u64,
    /// Whether enough replicas have acknowledged a write, by what the wait has counted.
    pub acknowledged: fn(asked: Replication, counted: Option<&Value>) -> Result<(), StoreError>,
    /// What a node of a Cluster says that has not run a command.
    pub redirect: fn(error: &StoreError, teller: &Endpoint) -> Option<Redirect>,
    /// A node has named the owner of a slot.
    pub moved: fn(owners: &mut SlotOwners<usize>, slot: u16, owner: usize),
    /// Which of the views is believed that were told in a look, each with the place of its teller.
    pub choose: fn(told: &[(Endpoint, View)], look: Probe<'_>) -> Choice,
    /// Whether one of a crowd that knows no owner looks when it is its turn, by whether another has
    /// found the owner meanwhile.
    pub looks: fn(is_found: bool) -> bool,
    /// Whether the owners are others than before, by what a node tells of all slots.
    pub settle: fn(owners: &mut SlotOwners<usize>, view: &View) -> bool,
}

impl Default for Rules {
    fn default() -> Self {
        Self {
            decide,
            is_fresh: |is_of_this_master| is_of_this_master,
            waits_for: |own| own,
            acknowledged,
            redirect: Redirect::of,
            moved: SlotOwners::moved,
            choose,
            looks: |is_found| !is_found,
            settle: SlotOwners::settle,
        }
    }
}
