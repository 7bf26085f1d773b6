use std::{cmp::Reverse, collections::BTreeMap, sync::Arc};

use leasehold_core::{
    AcquisitionId, Fence, Instant, LockName, Mode, RuntimeLabel, StoreError,
    store::{
        ForceRelease, ForceReleaseAnswer, Inspection, LeaseRecord, Scan, ScanCursor, ScanPage,
        WaiterRecord,
    },
};

use super::{
    failure::{minority, strange, too_few},
    node::{NodeAnswer, NodeCommand, NodeLease, QuorumNode, Word},
    round::{Round, gather, round},
    state::Quorum,
    tally::{count, kth_longest, majority, members},
};

/// What the nodes tell of a lock.
#[derive(Debug, Default)]
struct LockView {
    answered: usize,
    counter: u64,
    leases: Vec<NodeLease>,
    failures: Vec<StoreError>,
}

impl LockView {
    /// The leases of one try: the one that most nodes have.
    fn most(&self) -> Vec<&NodeLease> {
        let alike = |one: &NodeLease| {
            let is_same = |other: &&NodeLease| other.id == one.id && other.attempt == one.attempt;
            self.leases.iter().filter(is_same).collect::<Vec<_>>()
        };
        self.leases.iter().map(alike).max_by_key(Vec::len).unwrap_or_default()
    }

    /// Whether a majority has answered, and the missing answers cannot change whether the lock is held.
    fn is_clear(&self, nodes: usize) -> bool {
        let (most, needed) = (self.most().len(), majority(nodes));
        self.answered >= needed && (most >= needed || most + nodes - self.answered < needed)
    }
}

/// Looks at a lock on all nodes.
pub(super) async fn inspect<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    name: &LockName,
    deadline: Instant,
) -> Result<Inspection, StoreError> {
    let nodes = quorum.nodes.len();
    let id = AcquisitionId::new(quorum.entropy.runtime_id(), 0);
    let command = NodeCommand { name: name.clone(), id, word: Word::Inspect };
    let mut view = LockView::default();
    let sent =
        members(quorum.all()).map(|node| quorum.send(node, command.clone(), deadline)).collect();
    // Once the result is clear, the other nodes get only the hedge: the time after which another node would be
    // asked.
    gather(quorum, sent, deadline, quorum.hedge(), |node, reply| {
        let failure = quorum.failure(node, &reply);
        view.answered += usize::from(failure.is_none());
        view.failures.extend(failure);
        match reply {
            Ok(NodeAnswer::Record(lease)) => view.leases.push(*lease),
            Ok(NodeAnswer::Free { counter }) => view.counter = view.counter.max(counter),
            Ok(NodeAnswer::Out { .. }) | Err(_) => {}
            Ok(_) => view.failures.push(strange().from_endpoint(quorum.nodes[node].place())),
        }
        view.is_clear(nodes)
    })
    .await;
    if view.answered < quorum.majority() {
        return Err(too_few(nodes - view.answered, nodes, &view.failures, false));
    }
    inspection(quorum, &view)
}

/// What the answers of the nodes mean, in this order:
///
/// - Free: even if all nodes that did not answer had the lease, it would not be on a majority.
/// - Held: a majority has the lease, or this process knows that its own lease still stands.
/// - Otherwise an error: nodes that may have the lease did not answer.
fn inspection<N: QuorumNode>(
    quorum: &Quorum<N>,
    view: &LockView,
) -> Result<Inspection, StoreError> {
    let (nodes, needed) = (quorum.nodes.len(), quorum.majority());
    let most = view.most();
    let LockView { answered, counter, ref failures, .. } = *view;
    // A node that did not answer may have the lease, too.
    let Some(lease) = most.first().filter(|_| most.len() + nodes - answered >= needed) else {
        return Ok(Inspection::Free { last_fence: Fence::try_from(counter).ok() });
    };
    let own = quorum.records.lock().get(lease.id).cloned();
    let own = own.filter(|record| record.attempt == lease.attempt);
    let is_own = own.as_ref().is_some_and(|record| quorum.clock.now() < record.until);
    if most.len() < needed && !is_own {
        return Err(minority(most.len(), answered, nodes, failures));
    }
    // A lease that is not settled yet has the fence 0, and 0 is no fence.
    let told = most.iter().map(|lease| lease.fence.max(1)).max().unwrap_or(1);
    let Ok(fence) = own.map_or_else(|| Fence::try_from(told), |record| Ok(record.first)) else {
        return Ok(Inspection::Free { last_fence: None });
    };
    let mut left: Vec<_> = most.iter().map(|lease| lease.remaining).collect();
    let holds = most.iter().map(|lease| lease.holds).max().unwrap_or(1);
    Ok(Inspection::Held(LeaseRecord {
        id: lease.id,
        mode: Mode::Write,
        readers: Vec::new(),
        fence,
        // Nobody holds a lock that is only kept closed.
        holds: if lease.kept { 0 } else { holds },
        remaining: kth_longest(&mut left, most.len().min(needed)),
        label: lease.label.strip_prefix(RuntimeLabel::KEEPS).unwrap_or(&lease.label).to_owned(),
        held_for: most.iter().map(|lease| lease.held_for).max().unwrap_or_default(),
        kept: lease.kept,
        keeps: !lease.kept && lease.label.starts_with(RuntimeLabel::KEEPS),
        idle: false,
        waiters: waiters(&most),
    }))
}

/// Who waits, by what the nodes have seen together: those who wait for longer first.
fn waiters(leases: &[&NodeLease]) -> Vec<WaiterRecord> {
    let mut all = BTreeMap::new();
    for waiter in leases.iter().flat_map(|lease| &lease.waiters) {
        let known: &mut WaiterRecord = all.entry(waiter.id).or_insert_with(|| waiter.clone());
        known.waiting_for = known.waiting_for.max(waiter.waiting_for);
        known.silent_for = known.silent_for.min(waiter.silent_for);
    }
    let mut all: Vec<_> = all.into_values().collect();
    all.sort_by_key(|waiter| Reverse(waiter.waiting_for));
    all
}

/// Ends the lease that an operator saw. Afterwards a majority refuses its fence, so that no renewal brings it back.
pub(super) async fn force_release<N: QuorumNode>(
    quorum: &Arc<Quorum<N>>,
    ForceRelease { name, id, fence }: ForceRelease,
    deadline: Instant,
) -> Result<ForceReleaseAnswer, StoreError> {
    let to_all = |word: Word| {
        let name = name.clone();
        move |_| NodeCommand { name: name.clone(), id, word: word.clone() }
    };
    let force = to_all(Word::Force { fence: fence.get() });
    let enough = |round: &Round| round.heard() == quorum.all();
    let forced = round(quorum, quorum.all(), force, deadline, enough).await;
    if !forced.is_heard() {
        return Err(forced.too_few());
    }
    if forced.done == 0 {
        return Ok(ForceReleaseAnswer::Changed);
    }
    // If fewer than a majority ended it, a renewal could spread the lease again: so nodes without it are told to
    // refuse its fence.
    if !forced.is_done() {
        let needed = quorum.majority();
        let pass = to_all(Word::Pass { fence: forced.counter });
        let enough = |passed: &Round| count(passed.done | forced.done) >= needed;
        let mut passed = round(quorum, forced.gone, pass, deadline, enough).await;
        passed.done |= forced.done;
        if !passed.is_done() {
            return Err(passed.too_few());
        }
    }
    Ok(ForceReleaseAnswer::Ended { fence: Fence::try_from(forced.counter).ok() })
}

/// One step on one node; the nodes are read one after the other.
///
/// A lease that is believed is on a majority. So at least one node that can be reached names it, unless a
/// majority is out of reach.
pub(super) async fn scan<N: QuorumNode>(
    quorum: &Quorum<N>,
    Scan { pattern, cursor }: Scan,
    deadline: Instant,
) -> Result<ScanPage, StoreError> {
    let places: Vec<String> = quorum.nodes.iter().map(QuorumNode::place).collect();
    let parts = || places.iter().map(String::as_str);
    let Some((part, at)) = cursor.next(parts()) else { return Ok(ScanPage::end()) };
    let Some(node) = quorum.nodes.iter().find(|node| node.place() == part) else {
        return Ok(ScanPage::end());
    };
    let deadline = deadline.min(quorum.clock.now() + quorum.settings.patience());
    let (names, next, failed) = match node.scan(&pattern, at, deadline).await {
        Ok((names, at)) => (names, cursor.after(part, at), None),
        Err(error) => {
            let next = cursor.after(&missed(part), None).after(part, None);
            let failed = error_at_majority_missed(&next, &places, error);
            (Vec::new(), next, failed)
        }
    };
    let is_over = next.next(parts()).is_none();
    Ok(ScanPage { names, failed, next: (!is_over).then_some(next) })
}

/// The error to report, exactly once: when the number of nodes that could not be read reaches a majority.
fn error_at_majority_missed(
    cursor: &ScanCursor,
    places: &[String],
    error: StoreError,
) -> Option<StoreError> {
    let were_missed = places.iter().filter(|place| cursor.has_read(&missed(place))).count();
    let (nodes, needed) = (places.len(), majority(places.len()));
    // What the others have said is not known any more.
    let failures = vec![error; were_missed];
    (were_missed == needed).then(|| too_few(were_missed, nodes, &failures, false))
}

/// What the cursor remembers of a node that could not be read.
fn missed(place: &str) -> String {
    format!("missed {place}")
}
