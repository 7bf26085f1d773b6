use redis::aio::MultiplexedConnection;

use crate::{Failure, library, options::Options, worker::Contender};

const NAMESPACE: &str = "floor";
const TTL: u64 = 30_000;
const CLAIM_WINDOW: u64 = 3_000;
const LABEL: &str = "host/1/bench";
const RUNTIME: &str = "00000000-0000-4000-8000-000000000000";

/// One task that hands the lock to itself with the library's command `next`, which ends a lease
/// and grants the next one: a round trip for each, without Leasehold.
pub(crate) async fn connect(options: &Options) -> Result<Vec<Task>, Failure> {
    if options.workers != 1 {
        return Err("this floor has one worker".into());
    }
    let connection = super::client(&options.redis)?.get_multiplexed_async_connection().await?;
    let mut task = Task { connection, name: options.name.clone(), number: 0, fence: String::new() };
    task.begin().await?;
    Ok(vec![task])
}

/// The task, which always has the lock.
#[derive(Debug)]
pub(crate) struct Task {
    connection: MultiplexedConnection,
    name: String,
    /// The number of the acquisition that holds the lock.
    number: u64,
    /// The first token of its block.
    fence: String,
}

impl Task {
    async fn begin(&mut self) -> Result<(), Failure> {
        let mut call = library::command(NAMESPACE, &self.name);
        call.arg("as").arg(TTL).arg(TTL).arg(LABEL).arg("try").arg(self.id()).arg(0);
        let answer = call.invoke_async(&mut self.connection).await?;
        self.fence = library::granted(&answer, "granted")?;
        Ok(())
    }

    async fn pass_on(&mut self) -> Result<(), Failure> {
        let old = self.id();
        self.number += 1;
        let mut call = library::command(NAMESPACE, &self.name);
        call.arg("as").arg(TTL).arg(CLAIM_WINDOW).arg(LABEL);
        call.arg("next").arg(old).arg(&self.fence).arg(self.id()).arg(&self.fence).arg(self.number);
        let answer = call.invoke_async(&mut self.connection).await?;
        self.fence = library::granted(&answer, "next-granted")?;
        Ok(())
    }

    fn id(&self) -> String {
        format!("{RUNTIME}:{}", self.number)
    }
}

impl Contender for Task {
    type Held = ();

    async fn acquire(&mut self) -> Result<(), Failure> {
        self.pass_on().await
    }

    async fn release(&mut self, (): ()) -> Result<(), Failure> {
        Ok(())
    }
}
