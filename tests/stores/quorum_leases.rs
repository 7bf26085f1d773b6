//! What becomes of a lease of a quorum when only some of its nodes hear a command.

use std::{sync::Arc, time::Duration};

use leasehold_core::{
    AcquisitionId, Clock, Entropy, Fence, LockName, LockStore, QuorumSettings, SystemClock,
    SystemEntropy,
    store::{AcquireAnswer, ForceReleaseAnswer, Heartbeat, HoldAnswer, ReleaseAnswer, RenewAnswer},
};
use leasehold_quorum::connect_quorum;
use leasehold_redis::RedisConfig;
use leasehold_testkit::{
    FaultProxy, Gate, ManualClock, Patience, QuorumGroup, QuorumNetwork, RedisServer,
    contract::{Calls, PushLog, alice, bob, secs, ttl},
    proxy::{Action, Direction, Rule},
};
use tokio::{
    runtime::Handle,
    task::{JoinHandle, block_in_place},
};

/// Far more than anything takes on a busy machine.
const PATIENCE: Duration = Duration::from_secs(20);

/// How long a node may take.
const NODE_TIMEOUT: Duration = Duration::from_secs(1);

fn group(nodes: usize) -> QuorumGroup {
    let group = QuorumGroup::start(nodes);
    group.let_vote();
    group
}

async fn store(
    url: &str,
    node_timeout: Duration,
    clock: Arc<dyn Clock>,
) -> (Arc<dyn LockStore>, Calls) {
    let settings = QuorumSettings::default().node_timeout(node_timeout).expect("in range");
    let config = RedisConfig::new(url).expect("the quorum's address is one").quorum(settings);
    let (deadline, id) = (clock.now() + PATIENCE, SystemEntropy.runtime_id());
    let store = connect_quorum(&config, clock, Handle::current(), id).await.expect("a majority");
    let store: Arc<dyn LockStore> = Arc::new(store);
    let name = LockName::new("orders/42").expect("a name");
    (Arc::clone(&store), Calls::new(store, &name, deadline))
}

async fn calls(url: &str, node_timeout: Duration) -> Calls {
    store(url, node_timeout, Arc::new(SystemClock)).await.1
}

/// Lets a manual clock go as fast as the machine's, from now on.
fn go(clock: &ManualClock) -> JoinHandle<()> {
    let (hands, mut last) = (clock.clone(), SystemClock.now());
    tokio::spawn(async move {
        loop {
            SystemClock.sleep_until(last + Duration::from_millis(1)).await;
            let now = SystemClock.now();
            hands.advance(now.saturating_since(last));
            last = now;
        }
    })
}

/// A lease on no more servers than a majority. The holder's clock stands still while it acquires, so no
/// server is asked because another one is late.
async fn held_by_a_majority(url: &str) -> (Calls, Fence) {
    let clock = ManualClock::new();
    let goes = go(&clock);
    let (_, holder) = store(url, PATIENCE, Arc::new(clock.clone())).await;
    goes.abort();
    let fence = granted(&holder, alice(1)).await;
    go(&clock);
    (holder, fence)
}

async fn granted(calls: &Calls, id: AcquisitionId) -> Fence {
    match calls.acquire(id, ttl(60), None).await {
        Ok(AcquireAnswer::Granted(granted)) => granted.first,
        other => panic!("expected a grant and got {other:?}"),
    }
}

const KEY: &str = "leasehold:{orders/42}:lease";
const PLACES: &str = "leasehold:{orders/42}:waiters";

/// The servers that have a lease of an acquisition, and the others.
fn split(group: &QuorumGroup, id: AcquisitionId) -> (Vec<usize>, Vec<usize>) {
    let text = |number: &usize| group.server(*number).query::<Option<String>>(&["GET", KEY]);
    let has_it = |number: &usize| text(number).is_some_and(|text| text.contains(&id.to_string()));
    (0..group.nodes()).partition(has_it)
}

/// Nothing about the lock comes to a server any more, nor will it come later.
fn lose(proxy: &FaultProxy) {
    proxy.inject(Rule::new(Action::Drop).containing(KEY).always());
}

/// A lease of a quorum of three. One of the two nodes that have it hears nothing more.
struct Deaf {
    group: QuorumGroup,
    network: QuorumNetwork,
    holder: Calls,
    fence: Fence,
    /// The number of that node.
    node: usize,
}

async fn deaf() -> Deaf {
    let group = block_in_place(|| group(3));
    let network = group.network();
    let holder = calls(&network.url(), NODE_TIMEOUT).await;
    let fence = granted(&holder, alice(1)).await;
    let (holding, _) = block_in_place(|| split(&group, alice(1)));
    let node = holding[1];
    lose(network.proxy(node));
    Deaf { group, network, holder, fence, node }
}

/// An operator ends a lease on a majority of the nodes, and one that has it does not hear of that. The
/// holder's renewals may not bring it to others in place of those that ended it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_was_ended_by_force_does_not_come_back() {
    let group = block_in_place(|| group(5));
    let network = group.network();
    let (holder, fence) = held_by_a_majority(&group.url()).await;
    let operator = calls(&network.url(), Duration::from_secs(1)).await;
    let (holding, _) = block_in_place(|| split(&group, alice(1)));
    assert_eq!(holding.len(), group.majority(), "a majority was asked");
    network.cut(&holding[2..]);
    let ended = operator.force_release(alice(1), fence).await.expect("four of five answer");
    assert!(matches!(ended, ForceReleaseAnswer::Ended { fence: Some(_) }), "{ended:?}");
    let renewed = holder.renew(&[holder.renewal(alice(1), fence, ttl(60))]).await;
    assert_eq!(renewed.expect("all nodes answer"), [RenewAnswer::Gone]);
    let next = granted(&operator, bob(1)).await;
    assert!(next > fence);
}

/// Renewals find a lease gone that an operator has ended, and bring it to the servers that were not asked before. It
/// stays gone for its holder, also if one of those that had it does not say so once more.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_release_of_a_lease_that_was_ended_by_force_finds_it_gone() {
    let group = block_in_place(|| group(5));
    let network = group.network();
    let (holder, fence) = held_by_a_majority(&network.url()).await;
    let (holding, _) = block_in_place(|| split(&group, alice(1)));
    assert_eq!(holding.len(), group.majority(), "a majority was asked");
    let operator = calls(&group.url(), Duration::from_secs(1)).await;
    let ended = operator.force_release(alice(1), fence).await.expect("all nodes answer");
    assert!(matches!(ended, ForceReleaseAnswer::Ended { fence: Some(_) }), "{ended:?}");
    let renewed = holder.renew(&[holder.renewal(alice(1), fence, ttl(60))]).await;
    assert_eq!(renewed.expect("all nodes answer"), [RenewAnswer::Gone]);
    lose(network.proxy(holding[2]));
    let released = holder.release(alice(1), fence, None).await.expect("four of five answer");
    assert_eq!(released, ReleaseAnswer::Gone);
}

/// A lease that a majority does not have any more is gone, also if a node still keeps it closed.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_is_gone_that_only_a_minority_keeps_closed() {
    let group = block_in_place(|| group(3));
    let (holder, fence) = held_by_a_majority(&group.url()).await;
    block_in_place(|| {
        let (holding, others) = split(&group, alice(1));
        group.server(holding[0]).command(&["DEL", KEY]);
        // A node that has seen later leases does not take this one.
        let counted = format!("v5 {} 9999999999999", fence.get() + 1_000_000);
        group.server(others[0]).command(&["SET", KEY, &counted, "PX", "60000"]);
    });
    let released = holder.release(alice(1), fence, Some(secs(5))).await.expect("all nodes answer");
    assert_eq!(released, ReleaseAnswer::Gone);
}

/// A lease that an operator has ended is not kept closed, not even at a server that never had it.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_was_ended_by_force_closes_no_other_server() {
    let group = block_in_place(|| group(3));
    let (holder, fence) = held_by_a_majority(&group.url()).await;
    let operator = calls(&group.url(), NODE_TIMEOUT).await;
    let ended = operator.force_release(alice(1), fence).await.expect("all nodes answer");
    assert!(matches!(ended, ForceReleaseAnswer::Ended { fence: Some(_) }), "{ended:?}");
    let released = holder.release(alice(1), fence, Some(secs(30))).await.expect("all nodes answer");
    assert_eq!(released, ReleaseAnswer::Gone);
    let closed = |number| block_in_place(|| closed_until(group.server(number)));
    assert_eq!((0..3).filter_map(closed).count(), 0, "a server is closed");
}

/// An acquisition is withdrawn while a node that has granted it is cut off. The node ends its lease when it
/// is back, long before the lease is over.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_withdrawn_lease_ends_also_where_that_was_not_heard() {
    let Deaf { group, network, holder, .. } = deaf().await;
    assert!(holder.withdraw(alice(1)).await.expect("two of three answer"));
    // What was sent to it is given up.
    SystemClock.sleep_until(SystemClock.now() + NODE_TIMEOUT * 2).await;
    network.heal();
    let has_ended = async || block_in_place(|| split(&group, alice(1)).0.is_empty()).then_some(());
    Patience::of(PATIENCE).until_async(has_ended).await.expect("it is ended everywhere");
}

/// A hold that a majority has not done is sent once more. Meanwhile its lease is released: a server that missed that
/// would keep the lease for longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_hold_of_a_lease_that_was_released_meanwhile_is_not_sent_again() {
    let group = block_in_place(|| group(3));
    let network = group.network();
    let holder = calls(&network.url(), PATIENCE).await;
    let fence = granted(&holder, alice(1)).await;
    let (holding, _) = block_in_place(|| split(&group, alice(1)));
    // One server hears of the hold late, and the others refuse it.
    let (late, gate) = (holding[0], Gate::new());
    let action = |number| match number {
        _ if number == late => Action::Hold(gate.clone()),
        _ => Action::Answer(b"-LOADING it will be there soon\r\n".into()),
    };
    let rule = |number| Rule::new(action(number)).containing("\r\nhold\r\n").always();
    let rules: Vec<_> = (0..3).map(|number| network.proxy(number).inject(rule(number))).collect();
    let sent = || -> u64 { (0..3).map(|number| network.proxy(number).struck(rules[number])).sum() };
    let holding = holder.clone();
    let sending = tokio::spawn(async move { holding.hold(alice(1), fence, (2, 1), ttl(60)).await });
    let is_late = async || (gate.arrived() > 0).then_some(());
    Patience::of(PATIENCE).until_async(is_late).await.expect("it is sent to all that have it");
    let released = holder.release(alice(1), fence, None).await.expect("two of three are free");
    assert_eq!(released, ReleaseAnswer::Released);
    let before = sent();
    gate.open();
    let held = sending.await.expect("no panic").expect("the lease is not known any more");
    assert_eq!((held, sent()), (HoldAnswer::Gone, before));
}

/// What another program writes to a majority of the servers says nothing of the lease that was there.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn keys_of_another_type_are_no_end_of_a_lease() {
    let group = block_in_place(|| group(3));
    let holder = calls(&group.url(), NODE_TIMEOUT).await;
    let fence = granted(&holder, alice(1)).await;
    block_in_place(|| {
        for number in 0..2 {
            group.server(number).command(&["DEL", KEY]);
            group.server(number).command(&["HSET", KEY, "colour", "red"]);
        }
    });
    for error in [
        holder.hold(alice(1), fence, (2, 1), ttl(60)).await.expect_err("hold"),
        holder.release(alice(1), fence, Some(secs(5))).await.expect_err("keep"),
        holder.release(alice(1), fence, None).await.expect_err("release"),
        holder.force_release(alice(1), fence).await.expect_err("force_release"),
    ] {
        assert!(error.to_string().contains("layout version"), "{error}");
    }
}

/// Until when a server keeps the lock closed, in milliseconds since the Unix epoch, if it does.
fn closed_until(server: &RedisServer) -> Option<u64> {
    let text: String = server.query::<Option<String>>(&["GET", KEY])?;
    let mut words = text.split(' ');
    let is_kept = words.next().is_some_and(|flags| flags.contains('k'));
    // The counter, the end of the key, who has it, and four numbers of the lease come before.
    is_kept.then(|| words.nth(7)?.parse().ok()).flatten()
}

/// A lock is kept closed while a node that has its lease is cut off. The node is told when it is back, and
/// keeps the lock closed for no longer than the others.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lock_is_kept_closed_also_where_that_was_not_heard() {
    let closed = secs(30);
    let Deaf { group, network, holder, fence, node } = deaf().await;
    let kept = holder.release(alice(1), fence, Some(closed)).await.expect("two of three answer");
    assert!(matches!(kept, ReleaseAnswer::Kept { .. }), "{kept:?}");
    // What was sent to it is given up.
    SystemClock.sleep_until(SystemClock.now() + NODE_TIMEOUT * 2).await;
    network.heal();
    let missed = group.server(node);
    let is_kept = async || block_in_place(|| closed_until(missed));
    let until = Patience::of(PATIENCE).until_async(is_kept).await.expect("it is closed there");
    let [seconds, micros]: [u64; 2] = block_in_place(|| missed.query(&["TIME"]));
    let left = Duration::from_millis(until.saturating_sub(seconds * 1_000 + micros / 1_000));
    assert!(left + NODE_TIMEOUT <= closed, "{left:?} are left there");
}

/// A lock was kept closed, and is open again, when a node is back that has missed both: its lease ends.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_lease_that_was_kept_closed_ends_also_where_that_was_not_heard() {
    // Longer than a node may take: otherwise it is over before the others are asked.
    let closed = NODE_TIMEOUT * 3;
    let Deaf { group, network, holder, fence, node } = deaf().await;
    let kept = holder.release(alice(1), fence, Some(closed)).await.expect("two of three");
    assert!(matches!(kept, ReleaseAnswer::Kept { .. }), "{kept:?}");
    SystemClock.sleep_until(SystemClock.now() + closed + NODE_TIMEOUT).await;
    network.heal();
    let has_ended = async || {
        let missed = block_in_place(|| group.server(node).query::<Option<String>>(&["GET", KEY]));
        missed.is_none_or(|text| !text.contains(&alice(1).to_string())).then_some(())
    };
    Patience::of(PATIENCE).until_async(has_ended).await.expect("it has ended there");
}

/// A node that does not answer is told of an end for as long as somebody has the store, and not for longer.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_store_that_nobody_has_is_gone_although_a_node_missed_an_end() {
    let group = block_in_place(|| group(3));
    let holder = calls(&group.url(), Duration::from_secs(1)).await;
    let fence = granted(&holder, alice(1)).await;
    let (holding, _) = block_in_place(|| split(&group, alice(1)));
    block_in_place(|| group.pause(holding[1]));
    let released = holder.release(alice(1), fence, None).await.expect("two of three answer");
    assert_eq!(released, ReleaseAnswer::Released);
    let has_connections = |number: usize| {
        let clients: String = block_in_place(|| group.server(number).query(&["CLIENT", "LIST"]));
        clients.contains(" name=leasehold ")
    };
    assert!(has_connections(holding[0]));
    drop(holder);
    let are_closed = async || (!has_connections(holding[0])).then_some(());
    Patience::of(PATIENCE).until_async(are_closed).await.expect("long before the lease is over");
}

/// How many calls of scripts a server has served.
fn scripts(server: &RedisServer) -> u64 {
    block_in_place(|| server.calls("evalsha"))
}

/// One of three servers serves nothing, and the other two hear of a release one after the other. The first of them calls
/// the process that waits, whose try is in vain at the second. Its clock stands still by then, so its pause
/// ends only by the call of the second.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_process_that_steps_back_comes_when_the_next_server_calls() {
    let group = block_in_place(|| group(3));
    let (holders, waiters) = (group.network(), group.network());
    let (holder, fence) = held_by_a_majority(&holders.url()).await;
    let (holding, others) = block_in_place(|| split(&group, alice(1)));
    block_in_place(|| {
        // It answers with an error.
        group.server(others[0]).command(&["DEL", KEY]);
        group.server(others[0]).command(&["LPUSH", KEY, "no lease"]);
    });
    // All who ask begin at the same server, and go on with the next one.
    let (first, second) = match holding[..] {
        [one, other] if (one + 1) % 3 == other => (one, other),
        [one, other] => (other, one),
        _ => panic!("a majority was asked, not {holding:?}"),
    };
    let clock = ManualClock::new();
    let goes = go(&clock);
    let (store, waiter) = store(&waiters.url(), PATIENCE, Arc::new(clock)).await;
    let pushes = PushLog::listen(&*store, bob(1).runtime()).await;
    pushes.hears(2).await;
    let beat = Heartbeat { number: 1, claim_window: secs(60) };
    let answer = waiter.wait(bob(1), ttl(60), None, beat).await.expect("two of three answer");
    assert!(matches!(answer, AcquireAnswer::Queued(_)), "{answer:?}");
    goes.abort();
    let before = scripts(group.server(second));
    holders.proxy(first).black_hole(Direction::ToServer);
    let released = holder.release(alice(1), fence, None).await.expect("two of three are free");
    assert_eq!(released, ReleaseAnswer::Released);
    // The release, a vote, and the end of that.
    let was_in_vain = async || (scripts(group.server(second)) >= before + 3).then_some(());
    Patience::of(PATIENCE).until_async(was_in_vain).await.expect("it has come in vain");
    holders.heal();
    let (id, _, number) = pushes.grant().await;
    assert_eq!((id, number), (bob(1), 1));
}

/// A lease that was granted after a wait is on two of three servers, and the third one remembers that its
/// process waits. Nobody else is to wait for that once the lease has ended.
#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn a_place_does_not_outlast_the_lease_that_came_of_it() {
    let Deaf { group, network, holder, fence, node } = deaf().await;
    let gone = holder.release(alice(1), fence, None).await;
    assert!(gone.is_ok(), "one has ended it, and one had none: {gone:?}");
    // On the first and the last of those that are asked.
    let fence = granted(&holder, alice(2)).await;
    let (store, waiter) = store(&group.url(), PATIENCE, Arc::new(SystemClock)).await;
    let pushes = PushLog::listen(&*store, bob(1).runtime()).await;
    pushes.hears(2).await;
    block_in_place(|| group.server(node).command(&["DEL", KEY]));
    let beat = Heartbeat { number: 1, claim_window: secs(60) };
    let answer = waiter.wait(bob(1), ttl(60), None, beat).await.expect("all answer");
    assert!(matches!(answer, AcquireAnswer::Queued(_)), "{answer:?}");
    let released = holder.release(alice(2), fence, None).await.expect("two of three are free");
    assert_eq!(released, ReleaseAnswer::Released);
    let (id, granted, _) = pushes.grant().await;
    assert_eq!(id, bob(1));
    let released = waiter.release(bob(1), granted.first, None).await.expect("all answer");
    assert_eq!(released, ReleaseAnswer::Released);
    // The other field is the turn, which is over after 50 ms.
    let has_place = |number| group.server(number).query(&["HEXISTS", PLACES, &bob(1).to_string()]);
    let are_gone = || !(0..group.nodes()).any(has_place);
    let are_gone = async || block_in_place(are_gone).then_some(());
    Patience::of(PATIENCE).until_async(are_gone).await.expect("long before they are forgotten");
    network.heal();
}
