use std::time::Duration;

use redis::{AsyncConnectionConfig, PushInfo, PushKind, Script, aio::MultiplexedConnection};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{Failure, options::Options, worker::Contender};

/// Ends a holding and grants it to the other process: the least that a pushed grant can be.
const PASS: &str = "\
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
redis.call('SET', KEYS[1], ARGV[2], 'PX', 30000)
redis.call('PUBLISH', ARGV[3], ARGV[2])
return 1";

/// One of two processes, each with a task, that pass a lock to each other with minimal scripts and
/// a subscription on a connection of its own, as the library has; without Leasehold.
pub(crate) async fn connect(options: &Options) -> Result<Vec<Task>, Failure> {
    if options.workers != 1 || options.process > 1 {
        return Err("this floor has two processes of one worker".into());
    }
    let client = super::client(&options.redis)?;
    let (sender, grants) = unbounded_channel();
    let config = AsyncConnectionConfig::new().set_push_sender(sender);
    let mut ear = client.get_multiplexed_async_connection_with_config(&config).await?;
    let mut task = Task {
        commands: client.get_multiplexed_async_connection().await?,
        key: format!("{{{}}}:floor", options.name),
        me: options.process,
        script: Script::new(PASS),
        grants,
        holds: false,
        ear: None,
    };
    ear.subscribe(task.channel(task.me)).await?;
    task.ear = Some(ear);
    if task.me == 0 {
        task.begin().await?;
    }
    Ok(vec![task])
}

/// The task of one process.
#[derive(Debug)]
pub(crate) struct Task {
    commands: MultiplexedConnection,
    key: String,
    me: usize,
    script: Script,
    grants: UnboundedReceiver<PushInfo>,
    /// Whether it holds from the start.
    holds: bool,
    /// Kept open.
    ear: Option<MultiplexedConnection>,
}

impl Task {
    /// Takes the lock as soon as the other process would hear of it.
    async fn begin(&mut self) -> Result<(), Failure> {
        let other = self.channel(1);
        let mut asking = redis::cmd("PUBSUB");
        asking.arg("NUMSUB").arg(&other);
        let heard = async {
            loop {
                let (_, ears): (String, usize) = asking.query_async(&mut self.commands).await?;
                if ears > 0 {
                    return Ok::<_, Failure>(());
                }
                pause().await;
            }
        };
        heard.await?;
        redis::cmd("SET").arg(&self.key).arg(0).exec_async(&mut self.commands).await?;
        self.holds = true;
        Ok(())
    }

    fn channel(&self, process: usize) -> String {
        format!("{}:{process}", self.key)
    }
}

#[expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]
async fn pause() {
    tokio::time::sleep(Duration::from_millis(5)).await;
}

impl Contender for Task {
    type Held = ();

    async fn acquire(&mut self) -> Result<(), Failure> {
        if std::mem::take(&mut self.holds) {
            return Ok(());
        }
        while let Some(push) = self.grants.recv().await {
            if push.kind == PushKind::Message {
                return Ok(());
            }
        }
        Err("the subscription ended".into())
    }

    async fn release(&mut self, (): ()) -> Result<(), Failure> {
        let other = 1 - self.me;
        let mut call = self.script.key(&self.key);
        call.arg(self.me).arg(other).arg(self.channel(other));
        match call.invoke_async(&mut self.commands).await? {
            1 => Ok(()),
            _ => Err("somebody else has the lock".into()),
        }
    }
}
