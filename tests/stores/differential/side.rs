use std::{sync::Arc, time::Duration};

use leasehold_core::{
    StoreError, Ttl,
    store::{
        AcquireAnswer, ForceReleaseAnswer, Granted, Heartbeat, HoldAnswer, Inspection, Push,
        ReleaseAnswer, RenewAnswer, Waiter,
    },
};
use leasehold_testkit::contract::{Calls, PushLog, StoreUnderTest};

use super::{
    answer::Answer,
    op::{NAMES, Named, Op, Waiting, id, mode, names},
    tokens::Tokens,
};

const HALF_HOUR: Duration = Duration::from_secs(30 * 60);

/// One of the two stores, what its runtimes hear, and the tokens that it gave.
pub(crate) struct Side<'a> {
    subject: &'a dyn StoreUnderTest,
    pub(crate) pushes: [Arc<PushLog>; 3],
    tokens: [Tokens; NAMES],
}

fn ttl(half_hours: u32) -> Ttl {
    Ttl::new(HALF_HOUR * half_hours).expect("a ttl")
}

/// Listens to a store for all runtimes of a sequence.
pub(crate) async fn listen(subject: &dyn StoreUnderTest) -> [Arc<PushLog>; 3] {
    let store = subject.store();
    let pushes = |index| PushLog::listen(&*store, id(index).runtime());
    [pushes(0).await, pushes(1).await, pushes(2).await]
}

impl<'a> Side<'a> {
    pub(crate) fn new(subject: &'a dyn StoreUnderTest, pushes: [Arc<PushLog>; 3]) -> Self {
        Self { subject, pushes, tokens: Default::default() }
    }

    /// Takes a step; an error by its kind.
    pub(crate) async fn play(&mut self, op: &Op) -> Answer {
        self.send(op).await.unwrap_or_else(|error| error_of(&error))
    }

    /// A push, as both stores have to tell it.
    pub(crate) fn heard(&mut self, push: &Push) -> Answer {
        let index = |name| names().iter().position(|other| other == name).expect("a known name");
        match push {
            Push::Granted { name, id, granted, heartbeat } => {
                let name = index(name);
                let mut told = Answer::just(format!("{name} to {id} heard {heartbeat}"));
                told.and(self.granted(name, "pushed", granted));
                told
            }
            Push::ForceReleased { name, id, fence } => {
                let name = index(name);
                Answer::just(format!("{name} {id} ended {}", self.tokens[name].rank(*fence)))
            }
            Push::Wanted { name, id, fence } => {
                let name = index(name);
                Answer::just(format!("{name} {id} wanted {}", self.tokens[name].rank(*fence)))
            }
            other => Answer::just(format!("{other:?}")),
        }
    }

    fn calls(&self, name: usize) -> Calls {
        Calls::new(self.subject.store(), &names()[name], self.subject.deadline())
    }

    fn waiter(&self, name: usize, waiting: Waiting) -> Waiter {
        let watermark = self.tokens[name].watermark(waiting.seen);
        let claim_window = HALF_HOUR * waiting.window + HALF_HOUR / 2;
        let heartbeat = Heartbeat { number: waiting.number, claim_window };
        // A claim window that is cut down to it ends beside the half hours, too; and no half hour is
        // over while Redis keeps a counter for an eighth longer than it must.
        let ttl = Ttl::new(HALF_HOUR * 3 + HALF_HOUR / 2).expect("a ttl");
        let calls = self.calls(name).to(mode(waiting.id)).keeping(waiting.keeps);
        calls.waiter(id(waiting.id), ttl, watermark, heartbeat)
    }

    async fn send(&mut self, op: &Op) -> Result<Answer, StoreError> {
        Ok(match *op {
            Op::Acquire { name, id: by, ttl: time, seen, keeps } => {
                let watermark = self.tokens[name].watermark(seen);
                let calls = self.calls(name).to(mode(by)).keeping(keeps);
                let answer = calls.acquire(id(by), ttl(time), watermark).await?;
                self.acquired(name, &answer)
            }
            Op::Wait { name, waiting } => {
                let Waiter { id, ttl, watermark, keeps, heartbeat, .. } =
                    self.waiter(name, waiting);
                let calls = self.calls(name).to(mode(waiting.id)).keeping(keeps);
                let answer = calls.wait(id, ttl, watermark, heartbeat).await?;
                self.acquired(name, &answer)
            }
            Op::Heartbeat(ref batch) => self.beaten(batch).await?,
            Op::Hold { lease: (name, by, back), count, number, ttl: time } => {
                let (fence, holds) = (self.tokens[name].fence(back), (count, number));
                match self.calls(name).hold(id(by), fence, holds, ttl(time)).await? {
                    HoldAnswer::Held { remaining } => Answer::timed("held", remaining),
                    HoldAnswer::Gone => Answer::just("gone"),
                    HoldAnswer::DataLost => Answer::just("data lost"),
                }
            }
            Op::Release { lease, keep, next } => self.released(lease, keep, next).await?,
            Op::Renew(ref leases) => self.renewed(leases).await?,
            Op::Withdraw { name, id: by } => {
                Answer::just(format!("withdrawn {}", self.calls(name).withdraw(id(by)).await?))
            }
            Op::Inspect { name } => {
                let inspection = self.calls(name).inspect().await?;
                self.inspected(name, &inspection)
            }
            Op::ForceRelease { lease: (name, by, back) } => {
                let fence = self.tokens[name].fence(back);
                match self.calls(name).force_release(id(by), fence).await? {
                    ForceReleaseAnswer::Ended { fence } => {
                        let rank = fence.map(|fence| self.tokens[name].rank(fence));
                        Answer::just(format!("ended {rank:?}"))
                    }
                    ForceReleaseAnswer::Changed => Answer::just("changed"),
                }
            }
            Op::Pass(half_hours) => {
                self.subject.pass(HALF_HOUR * half_hours).await;
                Answer::just("passed")
            }
            Op::LoseAll => {
                self.subject.lose_all().await;
                Answer::just("lost")
            }
        })
    }

    fn granted(&mut self, name: usize, how: &str, granted: &Granted) -> Answer {
        let rank = self.tokens[name].rank_of(granted);
        let (contended, regressed) = (granted.contended, granted.regressed);
        let words = format!("{how} {rank} contended {contended} regressed {regressed}");
        Answer::timed(words, granted.remaining)
    }

    fn acquired(&mut self, name: usize, answer: &AcquireAnswer) -> Answer {
        match answer {
            AcquireAnswer::Granted(granted) => self.granted(name, "granted", granted),
            AcquireAnswer::Busy { remaining, keeps } => {
                Answer::timed(format!("busy keeps {keeps}"), *remaining)
            }
            AcquireAnswer::Queued(place) => {
                Answer::timed(format!("queued behind {}", place.ahead), place.remaining)
            }
            AcquireAnswer::Withdrawn => Answer::just("withdrawn"),
        }
    }

    async fn beaten(&mut self, batch: &[(usize, Waiting)]) -> Result<Answer, StoreError> {
        let waiters: Vec<_> =
            batch.iter().map(|(name, waiting)| self.waiter(*name, *waiting)).collect();
        let mut all = Answer::just("");
        let answers = self.calls(0).heartbeat(&waiters).await?;
        assert_eq!(answers.len(), batch.len());
        for ((name, _), answer) in batch.iter().zip(answers) {
            all.and(match answer {
                Ok(answer) => self.acquired(*name, &answer),
                Err(error) => error_of(&error),
            });
        }
        Ok(all)
    }

    async fn released(
        &mut self,
        (name, by, back): Named,
        keep: Option<u32>,
        next: Option<Waiting>,
    ) -> Result<Answer, StoreError> {
        let fence = self.tokens[name].fence(back);
        let keep = keep.map(|half_hours| HALF_HOUR * half_hours);
        let answer = match next {
            None => self.calls(name).release(id(by), fence, keep).await?,
            Some(next) => {
                let next = self.waiter(name, next);
                self.calls(name).release_and_queue(id(by), fence, keep, &next).await?
            }
        };
        Ok(match answer {
            ReleaseAnswer::Kept { remaining } => Answer::timed("kept", remaining),
            ReleaseAnswer::NextGranted(granted) => self.granted(name, "next granted", &granted),
            ReleaseAnswer::NextQueued(place) => {
                Answer::timed(format!("next queued behind {}", place.ahead), place.remaining)
            }
            other @ (ReleaseAnswer::Released | ReleaseAnswer::Gone | ReleaseAnswer::DataLost) => {
                Answer::just(format!("{other:?}"))
            }
        })
    }

    async fn renewed(&self, leases: &[(Named, u32)]) -> Result<Answer, StoreError> {
        let renewal = |((name, by, back), time): &(Named, u32)| {
            self.calls(*name).renewal(id(*by), self.tokens[*name].fence(*back), ttl(*time))
        };
        let batch: Vec<_> = leases.iter().map(renewal).collect();
        let mut all = Answer::just("");
        for answer in self.calls(0).renew(&batch).await? {
            all.and(match answer {
                RenewAnswer::Renewed { remaining } => Answer::timed("renewed", remaining),
                RenewAnswer::Gone => Answer::just("gone"),
                RenewAnswer::DataLost => Answer::just("data lost"),
                RenewAnswer::Corrupt => Answer::just("corrupt"),
            });
        }
        Ok(all)
    }

    fn inspected(&mut self, name: usize, inspection: &Inspection) -> Answer {
        match inspection {
            Inspection::Free { last_fence } => {
                let rank = last_fence.map(|fence| self.tokens[name].rank(fence));
                Answer::just(format!("free {rank:?}"))
            }
            Inspection::Held(lease) => {
                let rank = self.tokens[name].rank(lease.fence);
                let (id, holds, label) = (lease.id, lease.holds, &lease.label);
                let (kept, keeps) = (lease.kept, lease.keeps);
                let readers = &lease.readers;
                let words = format!(
                    "{id} {rank} holds {holds} {label} kept {kept} keeps {keeps} {readers:?}"
                );
                let mut all = Answer { words, times: vec![lease.remaining, lease.held_for] };
                for waiter in &lease.waiters {
                    let words = format!("{} {:?} {}", waiter.id, waiter.mode, waiter.label);
                    all.and(Answer::timed(words, waiter.silent_for));
                }
                all
            }
        }
    }
}

fn error_of(error: &StoreError) -> Answer {
    Answer::just(format!("{:?}", error.kind()))
}
