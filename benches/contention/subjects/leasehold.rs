use std::time::Duration;

use leasehold::{Guard, LockRuntime, ReentrantLock};

use crate::{Failure, options::Options, worker::Contender};

/// How a task gives its lease back.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Returning {
    /// It releases, and waits for the answer.
    Released,
    /// It drops its guard, as a scope does that ends.
    Dropped,
}

/// For how long a process keeps an idle lock that nobody else wants, if it does.
const KEPT: Duration = Duration::from_secs(1);

/// Connects with the library's default settings.
pub(crate) async fn connect(
    options: &Options,
    returning: Returning,
) -> Result<(LockRuntime, Vec<Task>), Failure> {
    let locks = LockRuntime::connect(&options.redis).await?;
    let keeps = options.peer.ends_with("-kept");
    let task = |name| {
        let lock = locks.lock(name)?;
        let lock = if keeps { lock.keep_idle(KEPT) } else { lock };
        Ok(Task(lock, returning))
    };
    let tasks = options.names().map(task).collect::<Result<_, Failure>>()?;
    Ok((locks, tasks))
}

/// Leaves nothing behind that the other processes would have to wait for.
pub(crate) async fn leave(locks: &LockRuntime) {
    // Whatever was not released is seen as a task that is stuck.
    let _ = locks.shutdown(Duration::from_secs(2)).await;
}

/// A task that uses the library's public API.
#[derive(Debug, Clone)]
pub(crate) struct Task(ReentrantLock, Returning);

impl Contender for Task {
    type Held = Guard;

    async fn acquire(&mut self) -> Result<Guard, Failure> {
        Ok(self.0.acquire().await?)
    }

    async fn release(&mut self, guard: Guard) -> Result<(), Failure> {
        match self.1 {
            Returning::Released => drop(guard.release().await?),
            Returning::Dropped => drop(guard),
        }
        Ok(())
    }
}
