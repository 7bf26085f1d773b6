#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

//! How long a runtime waits for a name that another one keeps.

use std::time::{Duration, Instant};

use tokio::runtime::Handle;

use crate::{
    Failure,
    bed::Bed,
    kind::Kind,
    round::Round,
    subjects::{Leasehold, Lock, Subject},
    waits::Waits,
};

/// Runs a round: names that are kept and names that nobody has, in turn.
///
/// Each name is recalled once, because a name that was recalled is not kept again at once.
pub(crate) fn round(bed: &mut Bed, keep_idle: Duration) -> Result<Vec<(Subject, Round)>, Failure> {
    bed.calls.flush()?;
    let url = bed.server.url();
    // Threads of their own, as two processes have them.
    let (keeping, asking) = (Kind::Multi.build()?, Kind::Multi.build()?);
    let keeper = keeping.block_on(Leasehold::connect(&url, Some(keep_idle)))?;
    let asker = asking.block_on(Leasehold::connect(&url, None))?;
    let start = Instant::now() + bed.warmup;
    let pair = Pair { keeper, keeping: keeping.handle().clone(), asker };
    let measured = asking.block_on(asking.spawn(pair.measure(start, start + bed.measured)))??;
    Ok([Subject::Recalled, Subject::Free]
        .into_iter()
        .zip(measured.map(|waits| Round::of_waits(waits.percentiles())))
        .collect())
}

/// A runtime that keeps names, and one that wants them.
struct Pair {
    keeper: Leasehold,
    keeping: Handle,
    asker: Leasehold,
}

impl Pair {
    /// How long acquires took, of names that were kept and of those that nobody had.
    async fn measure(self, start: Instant, end: Instant) -> Result<[Waits; 2], Failure> {
        let [mut recalled, mut free] = [Waits::default(), Waits::default()];
        for number in 0_usize.. {
            let now = Instant::now();
            if now >= end {
                break;
            }
            let name = format!("recalled-{number}");
            self.keep(&name).await?;
            if number == 0 && !self.asker.is_taken(&name).await? {
                return Err("the name was not kept".into());
            }
            let waits = [self.wait(&name).await?, self.wait(&format!("free-{number}")).await?];
            if now >= start {
                recalled.push(waits[0]);
                free.push(waits[1]);
            }
        }
        self.asker.leave().await;
        self.keeper.leave().await;
        Ok([recalled, free])
    }

    /// Lets the one runtime take and release a name twice: it keeps names from their second use on.
    async fn keep(&self, name: &str) -> Result<(), Failure> {
        let (keeper, name) = (self.keeper.clone(), self.keeper.name(name)?);
        let used = async move {
            for _ in 0..2 {
                let (_, held) = keeper.acquire(&name).await?;
                keeper.release(&name, held).await?;
            }
            Ok(())
        };
        self.keeping.spawn(used).await?
    }

    /// How long the other one waits for a name.
    async fn wait(&self, name: &str) -> Result<Duration, Failure> {
        let name = self.asker.name(name)?;
        let asked = Instant::now();
        let (_, held) = self.asker.acquire(&name).await?;
        let waited = asked.elapsed();
        self.asker.release(&name, held).await?;
        Ok(waited)
    }
}
