use std::time::Duration;

use leasehold::{AcquisitionId, Fence, ForceReleased, Stamp, fencing::GateError};
use leasehold_core::{Entropy, SystemEntropy};
use leasehold_testkit::{ClockShim, RedisServer};
use redis::Script;

use super::scene;
use crate::support::{
    child,
    crew::{Crew, Plan},
    lease,
    matrix::row,
    raw, storage, wait,
};

row! {
    server_clock_back: protected, control;
    fault: "the server's clock steps back by an hour while locks are held",
    right: "fences grow by one; holders go on; a force-release frees the lock of a dead holder",
    control: "fences that are the server's time",
}

pub(super) const ROLE: &str = "holder";
/// Of leases that nobody is to lose.
const TTL: Duration = Duration::from_secs(10);
/// Of the holder that dies.
const SHORT: Duration = Duration::from_secs(1);
const PLAN: Plan = Plan { ttl: TTL, ..Plan::PROTECTED };
/// Takes a lock with the time as its fence; the answer is 0 when it is taken.
const TAKE: &str = "\
local time = redis.call('TIME')
if not redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 30000) then return 0 end
return time[1] * 1000000 + time[2]";

fn protected() -> String {
    at_work();
    let left = wait::on_one_thread(stuck());
    format!("fence + 1 after the step; the lease grew to {left} s, freed by force")
}

/// Processes work on over the step as if nothing had happened.
fn at_work() {
    let shim = ClockShim::build();
    let server = scene::server_with(&shim);
    let mut crew = Crew::start(&PLAN, &server.url());
    crew.work(20);
    crew.halt(0);
    step_back(&shim, &server);
    crew.resume(0);
    crew.work(20);
    let finished = crew.finish();
    let summary = finished.history.check_strictly().unwrap_or_else(|found| panic!("{found:#?}"));
    assert_eq!((summary.refused, summary.lost), (0, 0), "{summary:?}");
    finished.right();
}

fn step_back(shim: &ClockShim, server: &RedisServer) {
    let before = scene::time(server);
    shim.back(scene::HOUR);
    assert!(scene::time(server) < before, "the clock did not step");
}

/// Times before September 2001 have fewer digits, and would compare wrongly.
#[test]
fn a_server_whose_clock_shows_a_time_before_2001_grants_nothing() {
    const DECADES: Duration = Duration::from_secs(30 * 365 * 24 * 60 * 60);
    wait::on_one_thread(async {
        let shim = ClockShim::build();
        let server = scene::server_with(&shim);
        let (one, other) = (
            scene::runtime_at(&server.url(), TTL).await,
            scene::runtime_at(&server.url(), TTL).await,
        );
        let _held = scene::take(&one).await;
        shim.back(DECADES);
        for name in ["a", "another"] {
            let tried = other.lock(name).expect("a name").try_acquire().await;
            let error = tried.expect_err("a lock of this name may be held").to_string();
            assert!(error.contains("September 2001"), "{error}");
        }
    });
}

/// A holder that dies after the step keeps its lock for an hour, unless it is ended by force; how
/// many seconds it had left.
async fn stuck() -> u64 {
    let shim = ClockShim::build();
    let server = scene::server_with(&shim);
    let locks = scene::runtime_at(&server.url(), TTL).await;
    let first = scene::take(&locks).await;
    step_back(&shim, &server);
    let before = first.fence();
    first.release().await.expect("a lease that was held to the end");
    let second = scene::take(&locks).await;
    assert_eq!(second.fence().get(), before.get() + 1);
    second.release().await.expect("a lease that was held to the end");

    let mut holder = scene::spawn(&shim, ROLE, &server);
    holder.wait_for_line("held", wait::CEILING);
    step_back(&shim, &server);
    holder.kill();
    let killed_at = scene::time(&server);
    wait::block_until("its ttl passes", || scene::time(&server) > killed_at + SHORT);
    let left = lease::left(&server, scene::LEASE).expect("it is held");
    assert!(left > scene::HOUR / 2, "{left:?}");
    let lock = locks.lock("a").expect("a name");
    assert!(lock.try_acquire().await.expect("an answer").is_none());
    let released = locks.force_release("a").await.expect("an answer");
    let ForceReleased::Ended { fence: Some(fence), .. } = released else { panic!("{released:?}") };
    let next = scene::take(&locks).await;
    assert!(next.fence() > fence);
    next.release().await.expect("a lease that was held to the end");
    let _ = locks.shutdown(wait::CEILING).await;
    scene::assert_clean(&server);
    left.as_secs()
}

/// The child: holds the lock until it is killed.
pub(super) async fn hold() {
    let locks = scene::runtime_at(&child::arg("url"), SHORT).await;
    let guard = scene::take(&locks).await;
    println!("held");
    println!("ended {:?}", guard.lost().await);
}

fn control() -> String {
    wait::on_one_thread(async {
        let shim = ClockShim::build();
        let (server, storage) = (scene::server_with(&shim), RedisServer::start());
        let gate = storage::gate_at(&storage.url());
        let mut raw = raw::connect(&server.url()).await;
        let mut take = async || {
            let lease = AcquisitionId::new(SystemEntropy.runtime_id(), 1);
            let script = Script::new(TAKE);
            let mut call = script.key("naive");
            let fence: u64 =
                call.arg(lease.to_string()).invoke_async(&mut raw).await.expect("an answer");
            Stamp::new(Fence::try_from(fence).expect("a free lock"), lease)
        };
        let old = take().await;
        gate.set("{v}", "old", old).await.expect("the only holder writes");
        step_back(&shim, &server);
        server.command(&["DEL", "naive"]);
        let new = take().await;
        assert!(new.fence < old.fence, "the control's fences grew");
        let refused = gate.set("{v}", "new", new).await;
        assert!(matches!(refused, Err(GateError::Stale(_))), "{refused:?}");
        gate.set("{v}", "late", old).await.expect("the control's storage takes the old one");
        "the fence fell: the holder is refused, the last one's late write taken".into()
    })
}
