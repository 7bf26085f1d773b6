#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::time::{Duration, Instant};

use tokio::{task::coop, time::timeout_at};

use super::{baton::Baton, output::Output};
use crate::{Failure, sleeper::Sleeper, subjects::Lock, waits::Waits, window::Window};

/// A task that wants a lock again and again.
pub(crate) struct Task<L: Lock> {
    pub(crate) lock: L,
    pub(crate) name: L::Name,
    pub(crate) hold: Duration,
    pub(crate) window: Window,
    pub(crate) sleeper: Sleeper,
    /// What it needs before it may ask, if the processes take turns.
    pub(crate) baton: Option<Baton>,
}

impl<L: Lock> Task<L> {
    /// Goes on until the window is over, or until it is clear that the lock does not come any more.
    pub(crate) async fn run(mut self) -> Result<Output, Failure> {
        let (mut fences, mut waits) = (Vec::new(), Waits::default());
        let end = self.window.drained();
        let contending = self.contend(&mut fences, &mut waits);
        let stuck = match timeout_at(end.into(), contending).await {
            Ok(done) => done.map(|()| 0)?,
            Err(_) => 1,
        };
        Ok(Output { fences, waits_ns: waits.into_nanos(), cpu_us: 0.0, stuck })
    }

    async fn contend(&mut self, fences: &mut Vec<u64>, waits: &mut Waits) -> Result<(), Failure> {
        let mut before = 0;
        while self.may_ask().await? {
            let asked = Instant::now();
            let (fence, held) = self.lock.acquire(&self.name).await?;
            let got = Instant::now();
            if fence <= before {
                return Err(format!("fence {fence} came after {before}").into());
            }
            before = fence;
            // Who gets the lock after the end lets the others out at once.
            let over = self.window.is_over(got);
            if !over && !self.hold.is_zero() {
                self.sleeper.sleep(self.hold).await?;
            }
            self.lock.release(&self.name, held).await?;
            if self.window.contains(got) {
                fences.push(fence);
                waits.push(got - asked);
            }
            if over {
                break;
            }
            if let Some(baton) = &mut self.baton {
                baton.pass().await?;
            }
            // What sends nothing does not wait either: other tasks get their turn here.
            coop::consume_budget().await;
        }
        Ok(())
    }

    async fn may_ask(&mut self) -> Result<bool, Failure> {
        match &mut self.baton {
            Some(baton) => Ok(baton.take().await?),
            None => Ok(true),
        }
    }
}
