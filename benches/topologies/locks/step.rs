use std::fmt;

use leasehold_core::{
    AcquisitionId, Fence, Mode, Replication,
    store::{
        Acquire, AcquireAnswer, Ask, Heartbeats, Next, Release, ReleaseAnswer, RenewAnswer,
        Renewal, Renewals, Waiter,
    },
};

use super::{
    actors::{Actors, beat, deadline},
    lock::Lock,
};
use crate::{Failure, replicas::one_replica};

/// A command for each of some locks, in the state that the steps before have left them in.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Step {
    /// The runtime of a number acquires locks that nobody has.
    Acquire(usize),
    /// A try of locks that another runtime has.
    Try(usize),
    /// The runtime of a number queues.
    Queue(usize),
    /// The first in the queue says that it waits on, so many locks in a batch.
    Heartbeat(usize),
    /// The holder renews, so many locks in a batch.
    Renew(usize),
    /// The same, and each renewal waits for a replica.
    RenewAcknowledged(usize),
    /// The holder releases. The next waiter gets the lock, and a message says so.
    Release,
    /// The same, and the holder queues anew.
    ReleaseAndQueue,
    /// The first in the queue has the lock and learns its fence, as its heartbeat would.
    Take,
}

/// As rows are named; without the number of the runtime.
impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Acquire(_) => f.write_str("acquire, free"),
            Self::Try(_) => f.write_str("try, taken"),
            Self::Queue(_) => f.write_str("acquire, queues"),
            Self::Heartbeat(1) => f.write_str("heartbeat"),
            Self::Heartbeat(batch) => write!(f, "heartbeat, batch of {batch}"),
            Self::Renew(1) => f.write_str("renewal"),
            Self::Renew(batch) => write!(f, "renewal, batch of {batch}"),
            Self::RenewAcknowledged(batch) => write!(f, "renewal, waits, batch of {batch}"),
            Self::Release => f.write_str("release"),
            Self::ReleaseAndQueue => f.write_str("release, queues anew"),
            Self::Take => f.write_str("take"),
        }
    }
}

impl Step {
    /// Sends the command for each lock, one after the other.
    pub(super) async fn run(self, actors: &Actors, locks: &mut [Lock]) -> Result<(), Failure> {
        let batch = match self {
            Self::Heartbeat(batch) | Self::Renew(batch) | Self::RenewAcknowledged(batch) => batch,
            _ => 1,
        };
        for locks in locks.chunks_mut(batch) {
            match (self, locks) {
                (Self::Heartbeat(_), locks) => actors.heartbeat(locks).await?,
                (Self::Renew(_), locks) => actors.renew(locks, Replication::NONE).await?,
                (Self::RenewAcknowledged(_), locks) => {
                    actors.renew(locks, one_replica()).await?;
                }
                (step, [lock]) => step.send(actors, lock).await?,
                (_, locks) => return Err(format!("{} locks at once", locks.len()).into()),
            }
        }
        Ok(())
    }

    async fn send(self, actors: &Actors, lock: &mut Lock) -> Result<(), Failure> {
        match self {
            Self::Acquire(runtime) => {
                let id = lock.acquisition(actors.runtimes[runtime]);
                let fence = granted(actors.acquire(lock, id, true).await?)?;
                lock.holder = Some((id, fence));
            }
            Self::Try(runtime) => {
                let id = lock.acquisition(actors.runtimes[runtime]);
                let answer = actors.acquire(lock, id, false).await?;
                let AcquireAnswer::Busy { .. } = answer else { return unexpected(answer) };
            }
            Self::Queue(runtime) => {
                let id = lock.acquisition(actors.runtimes[runtime]);
                let answer = actors.acquire(lock, id, true).await?;
                let AcquireAnswer::Queued(_) = answer else { return unexpected(answer) };
                lock.waiters.push(id);
            }
            Self::Release => {
                let answer = actors.release(lock, None).await?;
                let ReleaseAnswer::Released = answer else { return unexpected(answer) };
            }
            Self::ReleaseAndQueue => {
                let (old, _) = lock.holder.ok_or("nobody has the lock")?;
                let id = lock.acquisition(old.runtime());
                let answer = actors.release(lock, Some(id)).await?;
                let ReleaseAnswer::NextQueued(_) = answer else { return unexpected(answer) };
                lock.waiters.push(id);
            }
            Self::Take => {
                let id = lock.waiters.remove(0);
                let fence = granted(actors.acquire(lock, id, true).await?)?;
                lock.holder = Some((id, fence));
            }
            Self::Heartbeat(_) | Self::Renew(_) | Self::RenewAcknowledged(_) => {
                return Err("these go in batches".into());
            }
        }
        Ok(())
    }
}

impl Actors {
    async fn acquire(
        &self,
        lock: &mut Lock,
        id: AcquisitionId,
        waits: bool,
    ) -> Result<AcquireAnswer, Failure> {
        let wait = waits.then(|| beat(lock.next()));
        let command = Acquire {
            name: lock.name.clone(),
            id,
            mode: Mode::Write,
            ttl: self.ttl,
            watermark: None,
            label: self.label.clone(),
            keeps: false,
            acks: Replication::NONE,
            wait,
        };
        Ok(self.store.ask(command, deadline()).await?)
    }

    async fn release(
        &self,
        lock: &mut Lock,
        next: Option<AcquisitionId>,
    ) -> Result<ReleaseAnswer, Failure> {
        let (id, fence) = lock.holder.take().ok_or("nobody has the lock")?;
        let number = lock.next();
        let next = next.map(|id| Next {
            id,
            mode: Mode::Write,
            ttl: self.ttl,
            watermark: Some(fence),
            label: self.label.clone(),
            keeps: false,
            heartbeat: beat(number),
        });
        let command = Release { name: lock.name.clone(), id, fence, keep: None, next };
        Ok(self.store.ask(command, deadline()).await?)
    }

    async fn heartbeat(&self, locks: &mut [Lock]) -> Result<(), Failure> {
        let waiter = |lock: &mut Lock| {
            let heartbeat = beat(lock.next());
            let (name, id) = (lock.name.clone(), *lock.waiters.first().ok_or("nobody waits")?);
            let (mode, ttl, watermark, keeps) = (Mode::Write, self.ttl, None, false);
            Ok(Waiter { name, id, mode, ttl, watermark, keeps, heartbeat })
        };
        let batch = locks.iter_mut().map(waiter).collect::<Result<Vec<_>, Failure>>()?;
        let heartbeats = Heartbeats { batch, label: self.label.clone() };
        for answer in self.store.ask(heartbeats, deadline()).await? {
            let answer = answer?;
            let AcquireAnswer::Queued(_) = answer else { return unexpected(answer) };
        }
        Ok(())
    }

    async fn renew(&self, locks: &[Lock], acks: Replication) -> Result<(), Failure> {
        let renewal = |lock: &Lock| {
            let (id, fence) = lock.holder.ok_or("nobody has the lock")?;
            Ok(Renewal { name: lock.name.clone(), id, fence, ttl: self.ttl, acks })
        };
        let batch = locks.iter().map(renewal).collect::<Result<Vec<_>, Failure>>()?;
        for answer in self.store.ask(Renewals { batch }, deadline()).await? {
            let answer = answer?;
            let RenewAnswer::Renewed { .. } = answer else { return unexpected(answer) };
        }
        Ok(())
    }
}

fn granted(answer: AcquireAnswer) -> Result<Fence, Failure> {
    match answer {
        AcquireAnswer::Granted(granted) => Ok(granted.first),
        answer => unexpected(answer),
    }
}

fn unexpected<T>(answer: impl fmt::Debug) -> Result<T, Failure> {
    Err(format!("{answer:?}").into())
}
