//! What is compared: a lock, or what a lock cannot be cheaper than.

mod connections;
mod fenced;
mod floor;
mod leasehold;
mod ping;
mod rslock;

use std::future::Future;

use ::leasehold::LockRuntime;
use ::rslock::LockManager;
use connections::{connection, connections};

use crate::{
    Failure,
    round::{self, Load},
};

/// The subjects, in the order in which a report shows them.
#[derive(Debug, Clone, Copy, PartialEq, Eq, PartialOrd, Ord)]
pub(crate) enum Subject {
    /// Leasehold with its default settings.
    Leasehold,
    /// The scripts of Leasehold, called without it.
    Floor,
    /// Two scripts with a fence that promise nothing else.
    Fenced,
    /// Another lock: no fence, no re-entry, no queue.
    Rslock,
    /// Two commands that do nothing.
    Ping,
}

impl Subject {
    /// All of them.
    pub(crate) const ALL: [Self; 5] =
        [Self::Leasehold, Self::Floor, Self::Fenced, Self::Rslock, Self::Ping];

    /// What rows call it.
    pub(crate) fn name(self) -> &'static str {
        match self {
            Self::Leasehold => "leasehold",
            Self::Floor => "floor",
            Self::Fenced => "fenced scripts",
            Self::Rslock => "rslock",
            Self::Ping => "PING pair",
        }
    }

    /// Connects, warms up, and runs a round.
    pub(crate) async fn round(self, url: &str, load: Load) -> Result<Vec<f64>, Failure> {
        match self {
            Self::Leasehold => warm(url, load, &LockRuntime::connect(url).await?).await,
            Self::Floor => warm(url, load, &floor::Floor::connect(url).await?).await,
            Self::Fenced => warm(url, load, &fenced::Fenced::connect(url).await?).await,
            Self::Rslock => warm(url, load, &LockManager::new(vec![url])).await,
            Self::Ping => warm(url, load, &ping::Ping::connect(url).await?).await,
        }
    }
}

/// Something that takes and gives back a lock again and again.
pub(crate) trait Pairs: Clone + Send + Sync + 'static {
    /// Acquires a lock and releases it. The number is another one for each pair of a worker.
    fn pair(&self, name: &str, number: usize) -> impl Future<Output = Result<(), Failure>> + Send;
}

impl Pairs for fenced::Fenced {
    async fn pair(&self, name: &str, number: usize) -> Result<(), Failure> {
        self.acquire(name, number).await?;
        self.release(name, number).await
    }
}

async fn warm(url: &str, load: Load, subject: &impl Pairs) -> Result<Vec<f64>, Failure> {
    round::run(url, Load { pairs: load.pairs.div_ceil(10), ..load }, subject).await?;
    round::run(url, load, subject).await
}
