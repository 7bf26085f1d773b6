//! The loss of any single key, as an eviction causes it: whatever is asked next, every key that is
//! there has a time to live, fences grow, and those who wait are served.

use std::fmt;

use leasehold_core::{
    Fence, LockStore,
    store::{AcquireAnswer, Ask, Heartbeat, Next, ReleaseAnswer},
};
use leasehold_testkit::{
    RedisServer,
    contract::{Calls, alice, bob, carol, secs, ttl},
};

use super::support::{calls, granted, store_on};

/// What a lock was in when it lost a key.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum State {
    /// Nobody holds it, and its counter is there.
    Free,
    /// Alice holds it.
    Held,
    /// Alice holds it, Bob waits.
    OneWaits,
    /// Alice holds it, Bob and Carol wait.
    TwoWait,
    /// Alice holds it, and Bob was withdrawn.
    Withdrawn,
    /// Alice is gone, the lock is kept closed, Bob waits.
    Kept,
    /// The lease ran out, Bob and Carol wait.
    RanOut,
}

/// What is asked after the loss.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
enum Asked {
    Nothing,
    Try,
    Wait,
    Repeat,
    Heartbeats,
    Hold,
    Renew,
    Release,
    ReleaseAndQueue,
    Keep,
    Withdraw,
    ForceRelease,
}

use Asked::{
    ForceRelease, Heartbeats, Hold, Keep, Nothing, Release, ReleaseAndQueue, Renew, Repeat, Try,
    Wait, Withdraw,
};
use State::{Free, Held, Kept, OneWaits, RanOut, TwoWait, Withdrawn};

const STATES: [State; 7] = [Free, Held, OneWaits, TwoWait, Withdrawn, Kept, RanOut];
const ASKED: [Asked; 12] = [
    Nothing,
    Try,
    Wait,
    Repeat,
    Heartbeats,
    Hold,
    Renew,
    Release,
    ReleaseAndQueue,
    Keep,
    Withdraw,
    ForceRelease,
];
const KEYS: [&str; 4] = ["lease", "queue", "waiters", "withdrawn"];

fn beat(number: u64) -> Heartbeat {
    Heartbeat { number, claim_window: secs(30) }
}

/// One lock of its own for each case, all on one server.
struct Case<'a> {
    server: &'a RedisServer,
    calls: Calls,
    state: State,
    lost: &'static str,
    asked: Asked,
}

impl fmt::Display for Case<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{:?}, without {}, then {:?}", self.state, self.lost, self.asked)
    }
}

impl Case<'_> {
    fn key(&self, what: &str) -> String {
        format!("leasehold:{{{}}}:{what}", self.calls.name().as_str())
    }

    async fn waits(&self, id: leasehold_core::AcquisitionId, number: u64) {
        let answer = self.calls.wait(id, ttl(60), None, beat(number)).await.expect("an answer");
        assert!(matches!(answer, AcquireAnswer::Queued(_)), "{self}: {answer:?}");
    }

    async fn arrange(&self) -> Fence {
        let fence = granted(&self.calls, alice(1)).await;
        match self.state {
            Free => drop(self.calls.release(alice(1), fence, None).await.expect("release")),
            Held => {}
            OneWaits => self.waits(bob(1), 1).await,
            TwoWait | RanOut => {
                self.waits(bob(1), 1).await;
                self.waits(carol(1), 1).await;
                if self.state == RanOut {
                    self.server.command(&["DEL", &self.key("lease")]);
                }
            }
            Withdrawn => drop(self.calls.withdraw(bob(1)).await.expect("withdraw")),
            Kept => {
                self.waits(bob(1), 1).await;
                let kept = self.calls.release(alice(1), fence, Some(secs(60))).await;
                assert!(matches!(kept, Ok(ReleaseAnswer::Kept { .. })), "{self}: {kept:?}");
            }
        }
        fence
    }

    fn lose(&self) {
        let key = match self.lost {
            "withdrawn" => self.key(&format!("withdrawn:{}", bob(1))),
            what => self.key(what),
        };
        self.server.command(&["DEL", &key]);
    }

    async fn ask(&self, store: &dyn LockStore, fence: Fence) {
        let calls = &self.calls;
        let answered = match self.asked {
            Nothing => Ok(()),
            Try => calls.acquire(carol(5), ttl(60), Some(fence)).await.map(drop),
            Wait => calls.wait(carol(5), ttl(60), Some(fence), beat(5)).await.map(drop),
            Repeat => calls.wait(bob(1), ttl(60), None, beat(2)).await.map(drop),
            Heartbeats => {
                let batch = [
                    calls.waiter(bob(1), ttl(60), None, beat(2)),
                    calls.waiter(carol(1), ttl(60), None, beat(2)),
                ];
                calls.heartbeat(&batch).await.map(|answers| {
                    for answer in answers {
                        answer.unwrap_or_else(|error| panic!("{self}: {error}"));
                    }
                })
            }
            Hold => calls.hold(alice(1), fence, (2, 1), ttl(60)).await.map(drop),
            Renew => calls.renew(&[calls.renewal(alice(1), fence, ttl(60))]).await.map(drop),
            Release => calls.release(alice(1), fence, None).await.map(drop),
            ReleaseAndQueue => self.release_and_queue(store, fence).await,
            Keep => calls.release(alice(1), fence, Some(secs(60))).await.map(drop),
            Withdraw => calls.withdraw(bob(1)).await.map(drop),
            ForceRelease => calls.force_release(alice(1), fence).await.map(drop),
        };
        answered.unwrap_or_else(|error| panic!("{self}: {error}"));
    }

    async fn release_and_queue(
        &self,
        store: &dyn LockStore,
        fence: Fence,
    ) -> Result<(), leasehold_core::StoreError> {
        let label = leasehold_core::RuntimeLabel::of_process("test");
        let next = Next {
            id: alice(2),
            mode: leasehold_core::Mode::Write,
            ttl: ttl(60),
            watermark: Some(fence),
            label,
            keeps: false,
            heartbeat: beat(9),
        };
        let (name, keep) = (self.calls.name().clone(), None);
        let deadline = leasehold_core::Clock::now(&leasehold_core::SystemClock) + secs(20);
        let (id, next) = (alice(1), Some(next));
        let release = leasehold_core::store::Release { name, id, fence, keep, next };
        store.ask(release, deadline).await.map(drop)
    }

    /// A runtime that waits is served in the end, with a greater fence.
    async fn ends_well(&self, fence: Fence) {
        self.server.command(&["DEL", &self.key("lease")]);
        for _ in 0..8 {
            let answer = self.calls.wait(carol(7), ttl(60), Some(fence), beat(7)).await;
            match answer.unwrap_or_else(|error| panic!("{self}: {error}")) {
                AcquireAnswer::Granted(granted) => {
                    assert!(granted.first > fence, "{self}: the fence fell");
                    return;
                }
                // Somebody who waited longer has it, and does not come.
                _ => drop(self.server.command(&["DEL", &self.key("lease")])),
            }
        }
        panic!("{self}: nobody serves a waiter");
    }
}

#[tokio::test]
async fn no_key_lives_for_ever_when_any_other_is_lost() {
    let server = RedisServer::start();
    let store = store_on(&server).await;
    let mut number = 0;
    for state in STATES {
        for lost in KEYS {
            for asked in ASKED {
                number += 1;
                let calls = calls(&store).about(&format!("case/{number}"));
                let case = Case { server: &server, calls, state, lost, asked };
                let fence = case.arrange().await;
                case.lose();
                case.ask(&*store, fence).await;
                assert_eq!(server.keys_without_ttl(), [""; 0], "{case}");
                case.ends_well(fence).await;
                assert_eq!(server.keys_without_ttl(), [""; 0], "{case}, in the end");
                server.flush_all();
            }
        }
    }
}

/// The usual case of an eviction: one more process queues after what is known of the others is
/// lost.
#[tokio::test]
async fn a_place_behind_others_of_which_nothing_is_known_has_a_time_to_live() {
    let server = RedisServer::start();
    let calls = calls(&store_on(&server).await);
    granted(&calls, alice(1)).await;
    calls.wait(bob(1), ttl(60), None, beat(1)).await.expect("a place");
    server.command(&["DEL", "leasehold:{orders/42}:waiters"]);
    calls.wait(carol(1), ttl(60), None, beat(1)).await.expect("a place");
    assert_eq!(server.keys_without_ttl(), [""; 0]);
}
