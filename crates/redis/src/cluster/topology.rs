use std::{
    collections::BTreeMap,
    ops::RangeInclusive,
    sync::{
        Arc, OnceLock,
        atomic::{AtomicBool, AtomicU64, AtomicUsize, Ordering},
    },
    time::Duration,
};

use leasehold_core::{
    Clock, Entropy, Instant, Mutex, StoreError, StoreErrorKind, SystemEntropy, Ttl, backoff, within,
};
use redis::ConnectionInfo;
use tokio::{runtime::Handle, select, sync::Notify};

use super::{
    owners::SlotOwners,
    probe::{KnownCluster, Prober, Wanted},
    slot::tag_in,
    view::{KnownNodes, View},
};
use crate::{
    address::RedisAddress,
    classify::{classify_dial, no_runtime, not_in_time},
    config::{NodeSettings, RedisConfig},
    durations::{CLUSTER_REFRESHES, FAILURE_LASTS, NODE_REMEMBERED},
    endpoint::Endpoint,
    script::millis,
};

/// Makes what commands for a node are sent with, of its configuration and its slots.
pub(crate) type OpenNode<N> =
    Box<dyn Fn(&RedisConfig, &[RangeInclusive<u16>]) -> Result<N, StoreError> + Send + Sync>;

/// What to do about nodes of which none owns a slot.
pub const JOIN: &str = "join the nodes: redis-cli --cluster create HOST:PORT HOST:PORT …, with --cluster-replicas N for replicas";

/// The masters of a Cluster, and which slots each of them owns.
///
/// What is known may be old: a node that does not own a slot refuses the command and names the
/// owner, see [`Attempts`](super::attempts::Attempts).
pub(crate) struct ClusterTopology<N> {
    config: RedisConfig,
    open: OpenNode<N>,
    prober: Arc<Prober>,
    /// The nodes that are known: new connections lead to no others.
    members: Arc<KnownNodes>,
    /// The longest ttl of a lease, in milliseconds; 0 where none was asked for.
    longest: AtomicU64,
    clock: Arc<dyn Clock>,
    /// Where connections live; `None` for where the call is made.
    runtime: Option<Handle>,
    state: Mutex<TopologyState<N>>,
    /// When the last refresh failed, and why. It is locked during a refresh.
    refreshing: tokio::sync::Mutex<Option<(Instant, StoreError)>>,
    /// How many refreshes have succeeded.
    refreshes: AtomicU64,
    hint: Notify,
    /// Whether a node did not answer, or a slot had no owner, since the last refresh.
    has_missed: AtomicBool,
    turn: AtomicUsize,
}

struct TopologyState<N> {
    owners: SlotOwners<Arc<ClusterNode<N>>>,
    nodes: BTreeMap<Endpoint, Arc<ClusterNode<N>>>,
    next_number: usize,
}

/// A master, and what commands for it are sent with.
pub(crate) struct ClusterNode<N> {
    pub(super) endpoint: Endpoint,
    /// Different for each node.
    pub(super) number: usize,
    pub(super) store: Arc<N>,
    /// For commands that a node on the way to another owner has redirected here.
    asking: OnceLock<Arc<N>>,
    config: RedisConfig,
    settings: NodeSettings,
    /// Whether a view has named it.
    is_known: AtomicBool,
    opened_at: Instant,
    /// Whether it was opened for slots, so that its first command waits for a check of the server.
    has_slots: bool,
}

impl<N> ClusterNode<N> {
    /// A view has named it as the owner of these slots.
    fn owns(&self, slots: &[RangeInclusive<u16>]) {
        self.is_known.store(true, Ordering::Relaxed);
        self.settings.tag.set(tag_in(slots, ""));
    }
}

impl<N: Send + Sync + 'static> ClusterTopology<N> {
    pub(crate) fn new(
        config: &RedisConfig,
        clock: Arc<dyn Clock>,
        runtime: Option<Handle>,
        open: OpenNode<N>,
    ) -> Arc<Self> {
        let state =
            TopologyState { owners: SlotOwners::default(), nodes: BTreeMap::new(), next_number: 0 };
        Arc::new(Self {
            prober: Arc::new(Prober::new(config, Arc::clone(&clock))),
            members: Arc::default(),
            longest: AtomicU64::new(0),
            config: config.clone(),
            open,
            clock,
            runtime,
            state: Mutex::new(state),
            refreshing: tokio::sync::Mutex::default(),
            refreshes: AtomicU64::new(0),
            hint: Notify::new(),
            has_missed: AtomicBool::new(false),
            turn: AtomicUsize::new(0),
        })
    }

    /// How long a refresh with several attempts may take.
    pub(super) fn limit(&self) -> Duration {
        self.config.connect_timeout.saturating_mul(2)
    }

    pub(super) fn clock(&self) -> &dyn Clock {
        &*self.clock
    }

    /// A lease may last for `ttl`: no other Cluster is believed until the known one has not answered for
    /// that long.
    pub(super) fn may_last(&self, ttl: Ttl) {
        let millis = millis(ttl.get());
        if self.longest.load(Ordering::Relaxed) < millis {
            self.longest.fetch_max(millis, Ordering::Relaxed);
        }
    }

    /// How long a lease may last.
    fn longest(&self) -> Duration {
        match self.longest.load(Ordering::Relaxed) {
            0 => Ttl::default().get(),
            millis => Duration::from_millis(millis),
        }
    }

    /// The master that owns a slot, as far as it is known.
    pub(super) async fn owner(
        self: &Arc<Self>,
        slot: u16,
        deadline: Instant,
    ) -> Result<Arc<ClusterNode<N>>, StoreError> {
        self.known(deadline).await?;
        self.known_owner(slot).ok_or_else(|| {
            self.missed();
            let what = format!("no master of the Cluster owns the slot {slot}");
            self.unowned(
                what,
                "wait while the Cluster replaces a master; if that lasts, give the slot an owner, as CLUSTER INFO tells",
            )
        })
    }

    /// The master that owns a slot, if the Cluster is known.
    pub(super) fn known_owner(&self, slot: u16) -> Option<Arc<ClusterNode<N>>> {
        self.state.lock().owners.of(slot).cloned()
    }

    /// All masters, each once.
    pub(super) fn masters(&self) -> Vec<Arc<ClusterNode<N>>> {
        let state = self.state.lock();
        let is_known = |node: &&Arc<ClusterNode<N>>| node.is_known.load(Ordering::Relaxed);
        state.nodes.values().filter(is_known).cloned().collect()
    }

    /// One master after the other.
    pub(super) async fn any(
        self: &Arc<Self>,
        deadline: Instant,
    ) -> Result<Arc<ClusterNode<N>>, StoreError> {
        self.known(deadline).await?;
        let masters = self.masters();
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        masters.get(turn % masters.len().max(1)).cloned().ok_or_else(|| {
            // A Cluster that has lost all masters still names them.
            let what = "no node of the Cluster owns a slot";
            let error = StoreError::new(StoreErrorKind::Config, what, JOIN).as_answer();
            error.from_endpoint(self.config.address.to_string())
        })
    }

    /// What commands are sent with to a node that is about to own their slot.
    pub(super) fn asking(&self, node: &ClusterNode<N>) -> Result<Arc<N>, StoreError> {
        if let Some(asking) = node.asking.get() {
            return Ok(Arc::clone(asking));
        }
        let mut config = node.config.clone();
        config.node = Some(NodeSettings { is_asking: true, ..node.settings.clone() });
        let opened = Arc::new((self.open)(&config, &[])?);
        Ok(Arc::clone(node.asking.get_or_init(|| opened)))
    }

    /// A node has named another one as the owner of a slot.
    pub(super) fn moved(&self, slot: u16, to: &Endpoint) -> Result<(), StoreError> {
        let mut state = self.state.lock();
        let node = state.node_at(self, to, &[slot..=slot], None)?;
        state.owners.moved(slot, node);
        drop(state);
        self.hint.notify_one();
        Ok(())
    }

    pub(super) fn node_at(&self, endpoint: &Endpoint) -> Result<Arc<ClusterNode<N>>, StoreError> {
        self.state.lock().node_at(self, endpoint, &[], None)
    }

    /// A node did not answer, or a slot has no owner.
    pub(super) fn missed(&self) {
        self.has_missed.store(true, Ordering::Release);
        self.hint.notify_one();
    }

    /// Asks a node from time to time, and when something was missed.
    pub(super) async fn watch(&self) {
        let clock = &*self.clock;
        let mut misses: u32 = 0;
        loop {
            // While nodes do not answer, new connections are made for each refresh.
            let calm = backoff(CLUSTER_REFRESHES, misses, SystemEntropy.fraction());
            clock.sleep_until(clock.now() + calm).await;
            select! {
                biased;
                () = self.hint.notified() => {}
                () = clock.sleep_until(clock.now() + *CLUSTER_REFRESHES.end()) => {}
            }
            let has_missed = self.has_missed.swap(false, Ordering::AcqRel);
            misses = if has_missed { misses.saturating_add(1) } else { 0 };
            let refreshed = {
                let _one_at_a_time = self.refreshing.lock().await;
                self.refresh(wanted(misses)).await
            };
            if let Err(error) = refreshed {
                tracing::debug!(%error, "no node told who owns the slots");
            }
        }
    }

    /// Returns when the masters are known.
    async fn known(self: &Arc<Self>, deadline: Instant) -> Result<(), StoreError> {
        let before = self.refreshes.load(Ordering::Acquire);
        let is_known = || self.state.lock().owners.view().is_some();
        // Nobody watches a topology without a runtime.
        let is_unwatched =
            || self.runtime.is_none() && self.has_missed.swap(false, Ordering::AcqRel);
        if is_known() && !is_unwatched() {
            return Ok(());
        }
        let topology = Arc::clone(self);
        let refreshing = async move {
            let mut failed = topology.refreshing.lock().await;
            // Another of a crowd has refreshed meanwhile, for all.
            if topology.refreshes.load(Ordering::Acquire) != before {
                return Ok(());
            }
            if let Some((at, error)) = &*failed
                && topology.clock.now().saturating_since(*at) < FAILURE_LASTS
            {
                return Err(error.clone());
            }
            let refreshed = topology.refresh(Wanted::First).await;
            let now = topology.clock.now();
            *failed = refreshed.as_ref().err().map(|error| (now, error.clone()));
            refreshed
        };
        let refreshed = match &self.runtime {
            // A task of its own: it outlasts its caller, and connections live there.
            Some(home) => {
                let refreshing = home.spawn(refreshing);
                let refreshed = within(&*self.clock, deadline, refreshing).await;
                refreshed.map(|done| done.unwrap_or_else(|died| Err(no_runtime(&died))))
            }
            None => within(&*self.clock, deadline, refreshing).await,
        };
        match refreshed.unwrap_or_else(not_in_time) {
            // What is known is better than nothing.
            Err(_) if is_known() => Ok(()),
            refreshed => {
                refreshed.map_err(|error| error.from_endpoint(self.config.address.to_string()))
            }
        }
    }

    async fn refresh(&self, wanted: Wanted) -> Result<(), StoreError> {
        let (mut endpoints, known) = {
            let state = self.state.lock();
            let mut endpoints: Vec<Endpoint> = state.nodes.keys().cloned().collect();
            let seeds = self.config.address.cluster().into_iter().flatten();
            endpoints.extend(seeds.filter(|seed| !state.nodes.contains_key(seed)).cloned());
            (endpoints, state.owners.view().cloned())
        };
        // Not always the same ones of many.
        let turn = self.turn.fetch_add(1, Ordering::Relaxed);
        let first = turn % endpoints.len().max(1);
        endpoints.rotate_left(first);
        let known = KnownCluster { view: known.as_ref(), longest: self.longest() };
        let (view, teller) = self.prober.probe(endpoints, known, wanted).await?;
        self.settle(view, &teller.to_string().into())?;
        self.refreshes.fetch_add(1, Ordering::AcqRel);
        Ok(())
    }

    /// Stores a new view, and who told it.
    fn settle(&self, view: View, teller: &Arc<str>) -> Result<(), StoreError> {
        let mut left = Vec::new();
        let mut state = self.state.lock();
        let is_new = state.owners.settle(&view);
        state.forget(self.clock.now());
        if !is_new {
            return Ok(());
        }
        self.members.know(&view);
        let mut slots = BTreeMap::<&Endpoint, Vec<RangeInclusive<u16>>>::new();
        for (range, endpoint) in &view.owners {
            slots.entry(endpoint).or_default().push(range.clone());
        }
        for (endpoint, ranges) in &slots {
            state.node_at(self, endpoint, ranges, Some(teller))?.owns(ranges);
        }
        let mut masters = Vec::with_capacity(view.owners.len());
        for (range, endpoint) in &view.owners {
            masters.push((
                range.clone(),
                state.node_at(self, endpoint, &slots[endpoint], Some(teller))?,
            ));
        }
        let is_owner = |endpoint: &Endpoint| slots.contains_key(endpoint);
        state.nodes.retain(|endpoint, node| {
            let stays = is_owner(endpoint) || !node.is_known.load(Ordering::Relaxed);
            if !stays {
                left.push(Arc::clone(node));
            }
            stays
        });
        if state.owners.view().is_some_and(|known| known.owners != view.owners) {
            tracing::info!(
                masters = state.nodes.len(),
                left = left.len(),
                epoch = view.epoch,
                "the slots of the Cluster have other owners now"
            );
        }
        state.owners.replace(view, masters);
        drop(state);
        // Outside of the lock: it wakes who waits for the answers of a node.
        for node in &left {
            node.settings.mastership.advance();
        }
        Ok(())
    }

    /// The error of a command whose slot nobody owns.
    fn unowned(
        &self,
        what: impl Into<std::borrow::Cow<'static, str>>,
        remedy: &'static str,
    ) -> StoreError {
        let error = StoreError::new(StoreErrorKind::Definite, what, remedy).as_answer();
        error.from_endpoint(self.config.address.to_string())
    }
}

/// Which nodes a refresh asks, after so many refreshes in a row that followed a miss. If a trouble lasts,
/// such as a shard that is down, a process does not connect to every node every two seconds.
fn wanted(misses: u32) -> Wanted {
    match misses {
        0 => Wanted::First,
        1..=3 => Wanted::All,
        _ => Wanted::Few,
    }
}

impl<N> TopologyState<N> {
    /// Forgets nodes that only a redirection has named, a while ago.
    fn forget(&mut self, now: Instant) {
        self.nodes.retain(|_, node| {
            node.is_known.load(Ordering::Relaxed) || now < node.opened_at + NODE_REMEMBERED
        });
    }

    /// The node at an endpoint, opened where it is not known yet. One that was only asked for slots on
    /// their way is opened anew when it owns `slots`: nobody has checked it.
    fn node_at(
        &mut self,
        topology: &ClusterTopology<N>,
        endpoint: &Endpoint,
        slots: &[RangeInclusive<u16>],
        teller: Option<&Arc<str>>,
    ) -> Result<Arc<ClusterNode<N>>, StoreError> {
        if let Some(node) = self.nodes.get(endpoint)
            && (node.has_slots || slots.is_empty())
        {
            return Ok(Arc::clone(node));
        }
        let template: &ConnectionInfo = topology.config.address.info();
        let info = endpoint.info(template).map_err(|error| classify_dial(&error))?;
        let members = Arc::clone(&topology.members);
        let is_written =
            topology.config.address.cluster().is_some_and(|all| all.contains(endpoint));
        let announced_to = teller.filter(|_| !is_written).cloned();
        let settings = NodeSettings { members, announced_to, ..NodeSettings::default() };
        let mut config = topology.config.clone();
        config.address = RedisAddress::of_node(info);
        config.node = Some(settings.clone());
        let number = self.next_number;
        self.next_number += 1;
        let node = Arc::new(ClusterNode {
            endpoint: endpoint.clone(),
            number,
            store: Arc::new((topology.open)(&config, slots)?),
            asking: OnceLock::new(),
            config,
            settings,
            is_known: AtomicBool::new(false),
            opened_at: topology.clock.now(),
            has_slots: !slots.is_empty(),
        });
        self.nodes.insert(endpoint.clone(), Arc::clone(&node));
        Ok(node)
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::SystemClock;

    use super::*;

    #[test]
    fn what_lasts_is_not_asked_of_all_for_ever() {
        let wanted: Vec<_> = (0..6).map(wanted).collect();
        let expected =
            [Wanted::First, Wanted::All, Wanted::All, Wanted::All, Wanted::Few, Wanted::Few];
        assert_eq!(wanted, expected);
    }
    /// What is opened without slots is not checked before its first command.
    #[test]
    fn a_node_that_was_only_asked_is_opened_anew_when_it_owns_a_slot() {
        let opened = Arc::<Mutex<Vec<Vec<RangeInclusive<u16>>>>>::default();
        let noted = Arc::clone(&opened);
        let open = move |_: &RedisConfig, slots: &[RangeInclusive<u16>]| {
            noted.lock().push(slots.to_vec());
            Ok(())
        };
        let config = RedisConfig::new("redis+cluster://a:1").unwrap();
        let topology = ClusterTopology::new(&config, Arc::new(SystemClock), None, Box::new(open));
        let endpoint = Endpoint { host: "b".into(), port: 2 };
        let asked = topology.node_at(&endpoint).unwrap();
        topology.node_at(&endpoint).unwrap();
        assert_eq!(*opened.lock(), [vec![]], "once, without slots");
        topology.moved(7, &endpoint).unwrap();
        topology.moved(8, &endpoint).unwrap();
        assert_eq!(*opened.lock(), [vec![], vec![7..=7]], "once more, for its slot");
        let owner = topology.known_owner(7).unwrap();
        assert!(!Arc::ptr_eq(&owner, &asked));
        assert!(Arc::ptr_eq(&owner, &topology.node_at(&endpoint).unwrap()));
    }

    #[test]
    fn a_node_that_was_only_asked_is_forgotten_after_a_while() {
        let open = |_: &RedisConfig, _: &[RangeInclusive<u16>]| Ok(());
        let config = RedisConfig::new("redis+cluster://a:1").unwrap();
        let topology = ClusterTopology::new(&config, Arc::new(SystemClock), None, Box::new(open));
        let [asked, owner] = ["b", "c"].map(|host| Endpoint { host: host.into(), port: 2 });
        topology.node_at(&asked).unwrap();
        topology.moved(7, &owner).unwrap();
        let mut state = topology.state.lock();
        let now = state.nodes[&asked].opened_at;
        state.nodes[&owner].owns(&[7..=7]);
        state.forget(now);
        assert_eq!(state.nodes.len(), 2);
        state.forget(now + NODE_REMEMBERED);
        assert_eq!(state.nodes.keys().collect::<Vec<_>>(), [&owner]);
    }
}
