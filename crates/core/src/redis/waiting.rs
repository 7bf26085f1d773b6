use std::{collections::BTreeMap, sync::Arc};

use tokio::{runtime::Handle, sync};

use super::{
    batcher::{Batcher, not_sent},
    command::Preamble,
    lane::{Call, Lane},
    login::Dialer,
    renewing::lane_that_works,
    sharing::Sharing,
};
use crate::{
    clock::{Clock, Instant, within},
    mutex::Mutex,
    store::StoreError,
    types::Replication,
};

/// The connections on which commands wait for acknowledgements: their own for each number of
/// replicas, with disks or without. So a demand that cannot be met holds up no other, and there are
/// as many connections as demands, whatever the timeouts are.
#[derive(Debug)]
pub(super) struct Waiting {
    pub(super) dialer: Arc<Dialer>,
    pub(super) preamble: Arc<Preamble>,
    pub(super) clock: Arc<dyn Clock>,
    pub(super) runtime: Handle,
    /// How many connections carry the commands of a demand.
    pub(super) connections: usize,
    /// On a node of a Cluster none do.
    pub(super) sharing: Sharing,
    pub(super) by_demand: Mutex<BTreeMap<Demand, Arc<Lanes>>>,
}

/// The connections of one demand.
#[derive(Debug)]
pub(super) struct Lanes {
    pub(super) commands: Vec<Batcher<Preamble>>,
    renewals: Lane,
    /// Locked while a batch of renewals is sent: the next one would stand in line at the server.
    renewing: sync::Mutex<()>,
}

/// Whether disks count, and how many replicas.
type Demand = (bool, u8);

impl Waiting {
    pub(super) fn lanes(&self, acks: Replication) -> Arc<Lanes> {
        let mut by_demand = self.by_demand.lock();
        let demand = (acks.on_disk(), acks.replicas());
        Arc::clone(by_demand.entry(demand).or_insert_with(|| Arc::new(self.open())))
    }

    fn open(&self) -> Lanes {
        let Self { dialer, preamble, clock, runtime, sharing, .. } = self;
        let lane = || Lane::new(Arc::clone(dialer), Arc::clone(clock), runtime.clone());
        let batcher = |_| {
            let (preamble, clock) = (Arc::clone(preamble), Arc::clone(clock));
            Batcher::new(lane(), preamble, clock, runtime.clone(), sharing.clone(), true)
        };
        let commands = (0..self.connections).map(batcher).collect();
        Lanes { commands, renewals: lane(), renewing: sync::Mutex::default() }
    }
}

impl Lanes {
    /// Sends a batch of renewals when those before are answered; on the connection of that number if
    /// their own cannot be made.
    pub(super) async fn renew(
        &self,
        call: Call<'_>,
        other: usize,
        clock: &dyn Clock,
        deadline: Instant,
    ) -> Result<redis::Value, StoreError> {
        let Some(_turn) = within(clock, deadline, self.renewing.lock()).await else {
            return Err(not_sent());
        };
        let other = self.commands[other].lane();
        let lane = lane_that_works(&self.renewals, other, clock, deadline).await;
        lane.call(call, deadline).await
    }
}
