use redis::{AsyncConnectionConfig, PushInfo, PushKind, Script, aio::MultiplexedConnection};
use tokio::sync::mpsc::{UnboundedReceiver, unbounded_channel};

use crate::{Failure, options::Options, worker::Contender};

/// Takes a free lock, or queues: the least that an acquisition can be.
const TAKE: &str = "\
if redis.call('SET', KEYS[1], ARGV[1], 'NX', 'PX', 30000) then return 1 end
redis.call('RPUSH', KEYS[2], ARGV[1])
return 0";

/// Ends a holding and grants it to the first in the queue.
const PASS: &str = "\
if redis.call('GET', KEYS[1]) ~= ARGV[1] then return 0 end
local head = redis.call('LPOP', KEYS[2])
if head then
  redis.call('SET', KEYS[1], head, 'PX', 30000)
  redis.call(ARGV[3], ARGV[2] .. head, head)
else
  redis.call('DEL', KEYS[1])
end
return 1";

/// Which channels a grant travels on.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) enum Channels {
    /// Every node of a Cluster hears them.
    Plain,
    /// Only nodes with their slot hear them.
    #[allow(dead_code, reason = "one of the two benches has no Cluster")]
    Sharded,
}

impl Channels {
    fn subscribe(self) -> &'static str {
        match self {
            Self::Plain => "SUBSCRIBE",
            Self::Sharded => "SSUBSCRIBE",
        }
    }

    fn publish(self) -> &'static str {
        match self {
            Self::Plain => "PUBLISH",
            Self::Sharded => "SPUBLISH",
        }
    }
}

/// One of any number of processes, each with a task, that queue for a lock and are pushed it, with
/// minimal scripts, and so two commands a hand-over; without Leasehold.
///
/// The push floor has two processes which know whose turn it is: it needs neither queue nor second
/// command. This is the floor of a lock that everybody can wait for.
pub(crate) async fn connect(options: &Options, channels: Channels) -> Result<Vec<Task>, Failure> {
    if options.workers != 1 {
        return Err("this floor has one worker in each process".into());
    }
    let client = super::client(&options.redis)?;
    let (sender, grants) = unbounded_channel();
    let config = AsyncConnectionConfig::new().set_push_sender(sender);
    let mut ear = client.get_multiplexed_async_connection_with_config(&config).await?;
    let key = format!("{{{}}}:floor", options.name);
    let (queue, channel) = (format!("{key}:queue"), format!("{key}:"));
    let own = format!("{channel}{}", options.process);
    redis::cmd(channels.subscribe()).arg(own).exec_async(&mut ear).await?;
    Ok(vec![Task {
        commands: client.get_multiplexed_async_connection().await?,
        key,
        queue,
        channel,
        publish: channels.publish(),
        me: options.process,
        take: Script::new(TAKE),
        pass: Script::new(PASS),
        grants,
        _ear: ear,
    }])
}

/// The task of one process.
#[derive(Debug)]
pub(crate) struct Task {
    commands: MultiplexedConnection,
    key: String,
    queue: String,
    /// What the channels of the processes begin with.
    channel: String,
    publish: &'static str,
    me: usize,
    take: Script,
    pass: Script,
    grants: UnboundedReceiver<PushInfo>,
    /// Kept open.
    _ear: MultiplexedConnection,
}

impl Contender for Task {
    type Held = ();

    async fn acquire(&mut self) -> Result<(), Failure> {
        let mut call = self.take.key(&self.key);
        call.key(&self.queue).arg(self.me);
        if call.invoke_async::<u8>(&mut self.commands).await? == 1 {
            return Ok(());
        }
        while let Some(push) = self.grants.recv().await {
            if matches!(push.kind, PushKind::Message | PushKind::SMessage) {
                return Ok(());
            }
        }
        Err("the subscription ended".into())
    }

    async fn release(&mut self, (): ()) -> Result<(), Failure> {
        let mut call = self.pass.key(&self.key);
        call.key(&self.queue).arg(self.me).arg(&self.channel).arg(self.publish);
        match call.invoke_async(&mut self.commands).await? {
            1 => Ok(()),
            _ => Err("somebody else has the lock".into()),
        }
    }
}
