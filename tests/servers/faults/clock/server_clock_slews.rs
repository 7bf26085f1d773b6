use std::{
    sync::{
        Arc,
        atomic::{AtomicBool, Ordering},
    },
    thread::{self, JoinHandle},
    time::Duration,
};

use leasehold::time::{Clock, SystemClock};
use leasehold_testkit::{ClockShim, RedisServer};

use super::scene;
use crate::support::{matrix::row, naive::NaiveLock, raw, wait};

row! {
    server_clock_slews: protected, control;
    fault: "the server's clock runs 0.6 % fast: leases end early there",
    right: "belief ends earlier, by its margin of 1 %: never two believers",
    control: "a validity that begins with the reply, without a margin",
}

const TTL: Duration = Duration::from_secs(2);
const TOO_FAST: f64 = 0.006;
/// How often the control tries: a busy machine may be late for what comes of it.
const ATTEMPTS: u32 = 8;

/// A clock that runs too fast, until it is dropped.
struct FastClock {
    shim: Arc<ClockShim>,
    enough: Arc<AtomicBool>,
    slewing: Option<JoinHandle<()>>,
}

impl FastClock {
    fn start() -> Self {
        let (shim, enough) = (Arc::new(ClockShim::build()), Arc::new(AtomicBool::new(false)));
        let (slewed, ends) = (Arc::clone(&shim), Arc::clone(&enough));
        let slewing = thread::spawn(move || {
            let mut before = SystemClock.now();
            while !ends.load(Ordering::Relaxed) {
                thread::sleep(Duration::from_millis(2));
                let now = SystemClock.now();
                slewed.forward(now.saturating_since(before).mul_f64(TOO_FAST));
                before = now;
            }
        });
        Self { shim, enough, slewing: Some(slewing) }
    }

    fn server(&self) -> RedisServer {
        scene::server_with(&self.shim)
    }
}

impl Drop for FastClock {
    fn drop(&mut self) {
        self.enough.store(true, Ordering::Relaxed);
        let _ = self.slewing.take().map(JoinHandle::join);
    }
}

fn protected() -> String {
    let clock = FastClock::start();
    let server = clock.server();
    wait::on_one_thread(async {
        let locks = scene::runtime_at(&server.url(), TTL).await;
        let others = scene::runtime_at(&server.url(), TTL).await;
        let acquiring = locks.lock("a").expect("a name").acquire().renew(false);
        let guard = acquiring.await.expect("a lease");
        let now = SystemClock.now();
        let until = now + guard.remaining();
        let next = scene::take(&others).await;
        let granted_at = SystemClock.now();
        assert!(!guard.is_held() && until <= granted_at, "two believers");
        next.release().await.expect("a lease that was held to the end");
        drop(guard);
        for runtime in [locks, others] {
            let _ = runtime.shutdown(wait::CEILING).await;
        }
        scene::assert_clean(&server);
        let between = granted_at.saturating_since(until).as_millis();
        format!("the next believes {between} ms after the last; ttl {TTL:?}")
    })
}

fn control() -> String {
    let clock = FastClock::start();
    let server = clock.server();
    let overlap = (0..ATTEMPTS).find_map(|_| {
        server.flush_all();
        wait::on_one_thread(overlap(&server))
    });
    let overlap = overlap.expect("the control had one believer at a time");
    format!("two believers for {} ms", overlap.as_millis())
}

/// For how long two holders of a naive lock believed, if they did.
async fn overlap(server: &RedisServer) -> Option<Duration> {
    let mut lock = NaiveLock::new(raw::connect(&server.url()).await, "a", TTL);
    let first = lock.try_acquire().await.expect("an answer").expect("a free lock");
    while lock.try_acquire().await.expect("an answer").is_none() {
        tokio::time::sleep(Duration::from_millis(1)).await;
    }
    let overlap = first.until.saturating_since(SystemClock.now());
    (!overlap.is_zero()).then_some(overlap)
}
