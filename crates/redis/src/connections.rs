//! The connections that carry the commands of a store.

use std::{
    collections::BTreeMap,
    hash::{DefaultHasher, Hash, Hasher},
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
};

use leasehold_core::{Instant, LockName, Mutex, Replication, StoreError, within};
use tokio::{runtime::Handle, sync};

use super::{
    acknowledge::Answered,
    batcher::{Batcher, not_sent},
    command::Preamble,
    connection::Connection,
    dialer::Dialer,
    script::ScriptCall,
};

/// The connections of a store. Commands that wait for acknowledgements use other connections: one set for
/// each demand, which is a number of replicas, with disks or without. So a demand that cannot be met delays
/// no other.
pub(super) struct Connections {
    /// Makes a set; `true` for one where commands wait for acknowledgements.
    open: Box<dyn Fn(bool) -> Arc<ConnectionSet> + Send + Sync>,
    /// Those on which nothing waits for acknowledgements.
    pub(super) plain: Arc<ConnectionSet>,
    by_demand: Mutex<BTreeMap<Demand, Arc<ConnectionSet>>>,
}

/// A demand: whether disks count, and how many replicas.
type Demand = (bool, u8);

/// A few connections for commands, and one for renewals, so that renewals wait behind no command. Within
/// a set, the commands of a name use one connection, renewals apart.
pub(super) struct ConnectionSet {
    commands: Vec<Arc<Batcher<Preamble>>>,
    renewals: Connection,
    /// Whether making the connection for renewals was started: at the first lock, before the first renewal.
    renews: AtomicBool,
    /// Where renewals wait for acknowledgements: locked while a batch of them is sent. Only one batch at a time,
    /// because the server answers nothing else on the connection while it waits for replicas.
    renewing: Option<sync::Mutex<()>>,
}

impl Connections {
    /// Sets of `count` connections for commands, and one for renewals, which are made on first use.
    pub(super) fn new(
        dialer: Arc<Dialer>,
        preamble: Arc<Preamble>,
        runtime: Handle,
        count: usize,
        gathers: Option<Arc<AtomicBool>>,
    ) -> Self {
        let open = move |waits| {
            let connection = || Connection::new(Arc::clone(&dialer), runtime.clone(), None);
            let batcher =
                |_| Batcher::new(connection(), Arc::clone(&preamble), gathers.clone(), waits);
            Arc::new(ConnectionSet {
                commands: (0..count).map(batcher).collect(),
                renewals: connection(),
                renews: false.into(),
                renewing: waits.then(sync::Mutex::default),
            })
        };
        Self { plain: open(false), by_demand: Mutex::default(), open: Box::new(open) }
    }

    pub(super) fn of(&self, acks: Replication) -> Arc<ConnectionSet> {
        if !acks.are_asked() {
            return Arc::clone(&self.plain);
        }
        let mut by_demand = self.by_demand.lock();
        let open = || (self.open)(true);
        Arc::clone(by_demand.entry((acks.on_disk(), acks.replicas())).or_insert_with(open))
    }
}

impl ConnectionSet {
    /// The number of the connection to which a name is pinned, so that its commands usually keep their
    /// order.
    pub(super) fn number(&self, name: &LockName) -> usize {
        connection_number(name, self.commands.len())
    }

    /// The connection to which a name is pinned.
    pub(super) fn of_name(&self, name: &LockName) -> &Arc<Batcher<Preamble>> {
        &self.commands[self.number(name)]
    }

    /// Makes the connection of renewals when the first lock is taken.
    pub(super) fn prepare_renewals(&self) {
        // Reads first: a swap at each acquire would write a shared cache line.
        if !self.renews.load(Ordering::Relaxed) && !self.renews.swap(true, Ordering::Relaxed) {
            self.renewals.prepare();
        }
    }

    /// Sends a batch of renewals. If the renewal connection cannot be made, uses the connection of `name`.
    pub(super) async fn renew(
        &self,
        call: ScriptCall<'_>,
        name: &LockName,
        deadline: Instant,
    ) -> Result<Answered, StoreError> {
        let _turn = match &self.renewing {
            Some(renewing) => {
                let turn = within(self.renewals.clock(), deadline, renewing.lock()).await;
                Some(turn.ok_or_else(not_sent)?)
            }
            None => None,
        };
        let connection = self.for_renewals(self.of_name(name).connection(), deadline).await;
        connection.call(call, deadline).await
    }

    /// The connection that a batch of renewals uses; `other` is that of a name.
    ///
    /// 1. The renewal connection, if it exists.
    /// 2. `other`, if two of its round trips take longer than half of the time: the renewal connection would be
    ///    late, and is made in the background.
    /// 3. The renewal connection, if it can be made in half of the time.
    /// 4. `other`, which may still work, as on a server that takes no more clients.
    async fn for_renewals<'a>(
        &'a self,
        other: &'a Connection,
        deadline: Instant,
    ) -> &'a Connection {
        let own = &self.renewals;
        if own.present().is_some() {
            return own;
        }
        let now = own.clock().now();
        let half = deadline.saturating_since(now) / 2;
        if other.round_trip().is_some_and(|round_trip| round_trip * 2 > half) {
            own.prepare();
            return other;
        }
        let made = within(own.clock(), now + half, Box::pin(own.connect())).await;
        if matches!(made, Some(Ok(_))) { own } else { other }
    }
}

/// The number of the connection that a name uses, in a set of `of` connections.
pub fn connection_number(name: &LockName, of: usize) -> usize {
    if of == 1 {
        return 0;
    }
    let mut hasher = DefaultHasher::new();
    name.hash(&mut hasher);
    usize::try_from(hasher.finish() % of as u64).unwrap_or(0)
}
