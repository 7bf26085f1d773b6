//! Random sequences of commands get the same answers from both stores.
//!
//! Every ttl is a multiple of half an hour and so is every step of time, which ages the keys of
//! the server as it moves the clock of the memory; so the answers of the two stay apart by no
//! more than the real time that a sequence takes. Tokens are compared by the order in which they
//! appeared, for the stores have different clocks. A counter is retained for 75 minutes: it is
//! lost now and then while its lease stands.

use std::time::Duration;

use leasehold_core::{
    AcquisitionId, FencePolicy, FenceSettings, FenceToken, LockName, StoreError, Ttl,
    store::{
        AcquireAnswer, ForceReleaseAnswer, HoldAnswer, Inspection, ReleaseAnswer, RenewAnswer,
    },
};
use leasehold_testkit::contract::{Calls, MemorySubject, RedisSubject, StoreUnderTest, alice, bob};
use proptest::{
    collection::vec,
    prelude::*,
    test_runner::{Config, FileFailurePersistence, TestRunner},
};
use tokio::runtime::{Builder, Runtime};

const NAMES: usize = 3;
const HALF_HOUR: Duration = Duration::from_secs(30 * 60);
const TOLERANCE: Duration = Duration::from_secs(10 * 60);

/// A fence as a sequence names it: so many tokens back from the newest that the name has seen.
type Back = Option<usize>;

/// A lease as a sequence names it: the name, the acquisition, the fence.
type Named = (usize, usize, Back);

#[derive(Debug, Clone)]
enum Op {
    Acquire { name: usize, id: usize, ttl: u32, seen: Back },
    Hold { lease: Named, count: u32, number: u64, ttl: u32 },
    Release { lease: Named, keep: Option<u32> },
    Renew(Vec<(Named, u32)>),
    Withdraw { name: usize, id: usize },
    Inspect { name: usize },
    ForceRelease { lease: Named },
    Pass(u32),
    LoseAll,
}

fn op() -> impl Strategy<Value = Op> {
    let (name, id, half_hours) = (0..NAMES, 0..4_usize, 1..5_u32);
    // Mostly the newest token, sometimes an older one, sometimes one that never was.
    let back = prop_oneof![6 => Just(Some(0)), 2 => (1..4_usize).prop_map(Some), 1 => Just(None)];
    let lease = (name.clone(), id.clone(), back.clone());
    let seen = prop_oneof![2 => Just(None), 1 => (0..3_usize).prop_map(Some)];
    // Sometimes longer than a lock can be kept.
    let keep =
        prop_oneof![6 => Just(None), 2 => half_hours.clone().prop_map(Some), 1 => Just(Some(60))];
    prop_oneof![
        8 => (name.clone(), id.clone(), half_hours.clone(), seen)
            .prop_map(|(name, id, ttl, seen)| Op::Acquire { name, id, ttl, seen }),
        4 => (lease.clone(), 1..5_u32, 0..6_u64, half_hours.clone())
            .prop_map(|(lease, count, number, ttl)| Op::Hold { lease, count, number, ttl }),
        4 => (lease.clone(), keep).prop_map(|(lease, keep)| Op::Release { lease, keep }),
        4 => vec((lease.clone(), half_hours.clone()), 0..4).prop_map(Op::Renew),
        2 => (name.clone(), id).prop_map(|(name, id)| Op::Withdraw { name, id }),
        3 => name.prop_map(|name| Op::Inspect { name }),
        1 => lease.prop_map(|lease| Op::ForceRelease { lease }),
        2 => half_hours.prop_map(Op::Pass),
        1 => Just(Op::LoseAll),
    ]
}

/// What a store answered, with tokens by rank, and the times of it apart.
#[derive(Debug, PartialEq)]
struct Answer {
    words: String,
    times: Vec<Duration>,
}

/// One of the two stores, and the tokens that it gave, in the order of their first appearance.
struct Side<'a> {
    subject: &'a dyn StoreUnderTest,
    tokens: [Vec<FenceToken>; NAMES],
}

fn id(index: usize) -> AcquisitionId {
    [alice(1), alice(2), bob(1), bob(2)][index]
}

fn names() -> [LockName; NAMES] {
    ["orders/1", "a}b", "ü"].map(|name| LockName::new(name).expect("a name"))
}

fn ttl(half_hours: u32) -> Ttl {
    Ttl::new(HALF_HOUR * half_hours).expect("a ttl")
}

impl<'a> Side<'a> {
    fn new(subject: &'a dyn StoreUnderTest) -> Self {
        Self { subject, tokens: Default::default() }
    }

    fn token(&self, name: usize, back: Back) -> Option<FenceToken> {
        let known = &self.tokens[name];
        known.len().checked_sub(back? + 1).map(|at| known[at])
    }

    fn fence(&self, name: usize, back: Back) -> FenceToken {
        // Nobody gets this one; a plain counter gives it to both stores or to none.
        self.token(name, back).unwrap_or_else(|| FenceToken::try_from(1_u64).expect("a token"))
    }

    fn rank(&mut self, name: usize, token: FenceToken) -> usize {
        let known = &mut self.tokens[name];
        known.iter().position(|other| *other == token).unwrap_or_else(|| {
            known.push(token);
            known.len() - 1
        })
    }

    fn calls(&self, name: usize) -> Calls {
        Calls::new(self.subject.store(), &names()[name], self.subject.deadline())
    }

    async fn play(&mut self, op: &Op) -> Answer {
        self.send(op).await.unwrap_or_else(|error| just(format!("{:?}", error.kind())))
    }

    async fn send(&mut self, op: &Op) -> Result<Answer, StoreError> {
        Ok(match *op {
            Op::Acquire { name, id: by, ttl: time, seen } => {
                let watermark = self.token(name, seen);
                let answer = self.calls(name).acquire(id(by), ttl(time), watermark).await?;
                self.acquired(name, answer)
            }
            Op::Hold { lease: (name, by, back), count, number, ttl: time } => {
                let fence = self.fence(name, back);
                let holds = (count, number);
                match self.calls(name).hold(id(by), fence, holds, ttl(time)).await? {
                    HoldAnswer::Held { remaining } => timed("held", remaining),
                    HoldAnswer::Gone => just("gone"),
                }
            }
            Op::Release { lease: (name, by, back), keep } => {
                let fence = self.fence(name, back);
                let keep = keep.map(|half_hours| HALF_HOUR * half_hours);
                match self.calls(name).release(id(by), fence, keep).await? {
                    ReleaseAnswer::Kept { remaining } => timed("kept", remaining),
                    other => just(format!("{other:?}")),
                }
            }
            Op::Renew(ref leases) => self.renewed(leases).await?,
            Op::Withdraw { name, id: by } => {
                just(format!("withdrawn {}", self.calls(name).withdraw(id(by)).await?))
            }
            Op::Inspect { name } => {
                let inspection = self.calls(name).inspect().await?;
                self.inspected(name, inspection)
            }
            Op::ForceRelease { lease: (name, by, back) } => {
                let fence = self.fence(name, back);
                match self.calls(name).force_release(id(by), fence).await? {
                    ForceReleaseAnswer::Ended { fence } => {
                        just(format!("ended {:?}", fence.map(|fence| self.rank(name, fence))))
                    }
                    ForceReleaseAnswer::Changed => just("changed"),
                }
            }
            Op::Pass(half_hours) => {
                self.subject.pass(HALF_HOUR * half_hours).await;
                just("passed")
            }
            Op::LoseAll => {
                self.subject.lose_all().await;
                just("lost")
            }
        })
    }

    fn acquired(&mut self, name: usize, answer: AcquireAnswer) -> Answer {
        match answer {
            AcquireAnswer::Granted(granted) => {
                let block = (self.rank(name, granted.first), self.rank(name, granted.last));
                let words = format!("granted {block:?} regressed {}", granted.regressed);
                timed(words, granted.remaining)
            }
            AcquireAnswer::Busy { remaining } => timed("busy", remaining),
            AcquireAnswer::Withdrawn => just("withdrawn"),
        }
    }

    async fn renewed(&self, leases: &[(Named, u32)]) -> Result<Answer, StoreError> {
        let renewal = |((name, by, back), time): &(Named, u32)| {
            self.calls(*name).renewal(id(*by), self.fence(*name, *back), ttl(*time))
        };
        let batch: Vec<_> = leases.iter().map(renewal).collect();
        let mut all = just("");
        for answer in self.calls(0).renew(&batch).await? {
            all.words += match answer {
                RenewAnswer::Renewed { remaining } => {
                    all.times.push(remaining);
                    "renewed "
                }
                RenewAnswer::Gone => "gone ",
                RenewAnswer::Corrupt => "corrupt ",
            };
        }
        Ok(all)
    }

    fn inspected(&mut self, name: usize, inspection: Inspection) -> Answer {
        match inspection {
            Inspection::Free { last_fence } => {
                just(format!("free {:?}", last_fence.map(|fence| self.rank(name, fence))))
            }
            Inspection::Held(lease) => {
                let rank = self.rank(name, lease.fence);
                let (id, holds, label, kept) = (lease.id, lease.holds, lease.label, lease.kept);
                let words = format!("{id} {rank} holds {holds} {label} kept {kept}");
                Answer { words, times: vec![lease.remaining, lease.held_for] }
            }
        }
    }
}

fn just(words: impl Into<String>) -> Answer {
    Answer { words: words.into(), times: Vec::new() }
}

fn timed(words: impl Into<String>, time: Duration) -> Answer {
    Answer { words: words.into(), times: vec![time] }
}

fn alike(one: &Answer, other: &Answer) -> bool {
    let close = |(a, b): (&Duration, &Duration)| a.abs_diff(*b) < TOLERANCE;
    one.words == other.words
        && one.times.len() == other.times.len()
        && one.times.iter().zip(&other.times).all(close)
}

/// Plays a sequence on an empty memory and an emptied server.
fn play(runtime: &Runtime, redis: &RedisSubject, fencing: FenceSettings, ops: &[Op]) {
    runtime.block_on(async {
        redis.server().flush_all();
        let memory = MemorySubject::new(fencing);
        let (mut memory, mut redis) = (Side::new(&memory), Side::new(redis));
        for (step, op) in ops.iter().enumerate() {
            let (expected, found) = (memory.play(op).await, redis.play(op).await);
            assert!(alike(&expected, &found), "step {step}, {op:?}: {expected:?} and {found:?}");
        }
    });
}

fn stores_agree(policy: FencePolicy) {
    let fencing = FenceSettings::default().policy(policy).retention(Duration::from_secs(75 * 60));
    let runtime = Builder::new_current_thread().enable_all().build().expect("a runtime");
    let redis = runtime.block_on(RedisSubject::new(fencing));
    let regressions = FileFailurePersistence::Direct("tests/differential.regressions");
    let mut runner = TestRunner::new(Config {
        failure_persistence: Some(Box::new(regressions)),
        ..Config::default()
    });
    let outcome = runner.run(&vec(op(), 1..60), |ops| {
        play(&runtime, &redis, fencing, &ops);
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{error}");
    }
}

#[test]
fn both_stores_give_the_same_answers() {
    stores_agree(FencePolicy::TimeFloor);
}

#[test]
fn both_stores_give_the_same_answers_under_a_plain_counter() {
    stores_agree(FencePolicy::Counter);
}
