//! Rows behind a gate: what each holder of a lock wrote, in the order in which it was accepted.

use std::{
    env,
    error::Error,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold::{
    Stamp,
    fencing::{FencedScript, MemoryGate, RedisGate},
    redis::{RedisConfig, RedisPool, Replication},
};
use redis::FromRedisValue;

/// An error that ends the program.
pub(crate) type Failure = Box<dyn Error + Send + Sync>;

/// How long rows and their watermark are kept on a server.
const LIFE: Duration = Duration::from_secs(60 * 60);

/// A gate on the servers of an address, with connections of its own.
///
/// A write is told as done when some replicas have it, too: as many as `REPLICAS` says, or else one
/// where it takes over when its master fails.
pub(crate) fn gate(url: &str) -> Result<RedisGate, Failure> {
    // A failover may take longer than a call usually does.
    let pool = RedisPool::new(&RedisConfig::new(url)?)?.command_timeout(Duration::from_secs(20))?;
    let gate = RedisGate::new(pool).watermark_ttl(LIFE)?;
    let scheme = url.split("://").next().unwrap_or_default();
    let fails_over = scheme.ends_with("+sentinel") || scheme.ends_with("+cluster");
    let replicas = match env::var("REPLICAS") {
        Ok(number) => number.parse().map_err(|error| format!("REPLICAS: {error}"))?,
        Err(_) => u8::from(fails_over),
    };
    let timeout = Duration::from_secs(1);
    Ok(match replicas {
        0 => gate,
        replicas => gate.replication(Replication::wait(replicas, timeout)?),
    })
}

/// What was written, and under which fence.
#[derive(Debug, Clone, PartialEq, Eq)]
pub(crate) struct Row {
    pub(crate) fence: u64,
    pub(crate) text: String,
}

/// A list that only the newest holder may read and write. Clones are the same list; use them in the
/// tokio runtime in which the first was used.
#[derive(Debug, Clone)]
pub(crate) enum Rows {
    /// In the memory of this process.
    Here { gate: Arc<MemoryGate>, rows: Arc<Mutex<Vec<Row>>> },
    /// On a Redis server, for an hour.
    Redis { append: Arc<FencedScript>, read: Arc<FencedScript>, key: String },
}

impl Rows {
    /// No rows, in this process.
    pub(crate) fn here() -> Self {
        Self::Here { gate: Arc::default(), rows: Arc::default() }
    }

    /// The rows under a key of a server.
    pub(crate) fn on_redis(gate: &RedisGate, key: String) -> Self {
        let life = LIFE.as_millis();
        let append = gate.wrap(&format!(
            "redis.call('RPUSH', KEYS[1], FENCE .. ' ' .. ARGV[1]) \
             redis.call('PEXPIRE', KEYS[1], {life})"
        ));
        let read = gate.wrap("return redis.call('LRANGE', KEYS[1], 0, -1)");
        Self::Redis { append: Arc::new(append), read: Arc::new(read), key }
    }

    /// Shuts out all earlier holders, and reads what they wrote.
    pub(crate) async fn open(&self, stamp: Stamp) -> Result<Vec<Row>, Failure> {
        match self {
            Self::Here { gate, rows } => Ok(gate.write("rows", stamp, || lock(rows).clone())?),
            Self::Redis { read, key, .. } => {
                let nothing: [String; 0] = [];
                let answer = read.call(key, [key], nothing, stamp).await?;
                Vec::<String>::from_redis_value(answer)?.iter().map(|row| Row::parse(row)).collect()
            }
        }
    }

    /// Adds a row if no newer holder has opened the list.
    pub(crate) async fn append(&self, stamp: Stamp, text: &str) -> Result<(), Failure> {
        match self {
            Self::Here { gate, rows } => {
                let row = Row { fence: stamp.fence.get(), text: text.to_owned() };
                gate.write("rows", stamp, || lock(rows).push(row))?;
            }
            Self::Redis { append, key, .. } => {
                append.call(key, [key], [text], stamp).await?;
            }
        }
        Ok(())
    }
}

impl Row {
    fn parse(row: &str) -> Result<Self, Failure> {
        let (fence, text) = row.split_once(' ').ok_or("a row has a fence and a text")?;
        Ok(Self { fence: fence.parse()?, text: text.to_owned() })
    }
}

fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}
