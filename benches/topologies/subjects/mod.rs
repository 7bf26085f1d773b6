//! What is compared on every topology.

#[path = "../../acquire_release/subjects/connections.rs"]
mod connections;
#[path = "../../acquire_release/subjects/fenced.rs"]
mod fenced;
#[path = "../../acquire_release/subjects/floor.rs"]
mod floor;
#[path = "../../acquire_release/subjects/leasehold.rs"]
mod leasehold;
mod waiting;

use std::future::Future;

use connections::{connection, connections};
pub(crate) use fenced::Fenced;
pub(crate) use floor::Floor;
pub(crate) use waiting::Waiting;

use crate::Failure;

/// Something that takes and gives back a lock again and again.
pub(crate) trait Pairs: Clone + Send + Sync + 'static {
    /// Acquires a lock and releases it. The number is another one for each pair of a worker.
    fn pair(&self, name: &str, number: usize) -> impl Future<Output = Result<(), Failure>> + Send;
}

impl Pairs for Fenced {
    async fn pair(&self, name: &str, number: usize) -> Result<(), Failure> {
        self.acquire(name, number).await?;
        self.release(name, number).await
    }
}

/// What connects to each of some addresses.
pub(crate) async fn on_each<T>(
    addresses: Vec<String>,
    connect: impl AsyncFn(&str) -> Result<T, Failure>,
) -> Result<Vec<T>, Failure> {
    let mut all = Vec::new();
    for address in addresses {
        all.push(connect(&address).await?);
    }
    Ok(all)
}
