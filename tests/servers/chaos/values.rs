use leasehold::{
    Stamp,
    fencing::{FenceGate, GateError, RedisGate},
};
use leasehold_testkit::RedisServer;
use redis::{Script, Value, aio::MultiplexedConnection};

/// Writes a value, and keeps beside it, whatever a gate thinks of the write, how many were accepted
/// and how many of those came with a lower fence than one before. Returns the number of the write.
const WRITE: &str = "\
if tonumber(ARGV[2]) < tonumber(redis.call('HGET', KEYS[2], 'fence') or 0) then
  redis.call('HINCRBY', KEYS[2], 'stale', 1)
else
  redis.call('HSET', KEYS[2], 'fence', ARGV[2])
end
redis.call('SET', KEYS[1], ARGV[1])
return redis.call('HINCRBY', KEYS[2], 'accepted', 1)";

/// Numbers that are read, increased by one and written, each under the lock of its name.
#[derive(Debug, Clone)]
pub(crate) struct Values {
    gate: Option<RedisGate>,
    raw: MultiplexedConnection,
}

/// How all of them ended.
#[derive(Debug, Clone, Copy, Default, PartialEq, Eq)]
pub(crate) struct Sum {
    /// Writes that were accepted.
    pub(crate) accepted: u64,
    /// Those of a lower fence than one before.
    pub(crate) stale: u64,
    /// What the numbers show.
    pub(crate) shown: u64,
}

impl Values {
    pub(crate) fn new(gate: Option<RedisGate>, raw: MultiplexedConnection) -> Self {
        Self { gate, raw }
    }

    /// Reads a number, of which the holder before is shut out from now on; `None` if this one is.
    pub(crate) async fn read(&mut self, name: &str, stamp: Stamp) -> Option<u64> {
        if let Some(gate) = &self.gate {
            match gate.advance(&key(name), stamp).await {
                Ok(_) => {}
                Err(GateError::Stale(_)) => return None,
                Err(error) => panic!("the storage knows no faults: {error}"),
            }
        }
        let mut get = redis::cmd("GET");
        let read: Option<u64> = get.arg(key(name)).query_async(&mut self.raw).await.expect("read");
        Some(read.unwrap_or_default())
    }

    /// Writes a number, and returns which write of that name it was; `None` when it is refused.
    pub(crate) async fn write(&mut self, name: &str, value: u64, stamp: Stamp) -> Option<u64> {
        let (value, fence) = (value.to_string(), stamp.fence.to_string());
        let Some(gate) = &self.gate else {
            let script = Script::new(WRITE);
            let mut call = script.key(key(name));
            let call = call.key(facts(name)).arg(value).arg(fence);
            return Some(call.invoke_async(&mut self.raw).await.expect("written"));
        };
        let keys = [key(name), facts(name)];
        match gate.wrap(WRITE).call(&key(name), &keys, [value, fence], stamp).await {
            Ok(Value::Int(order)) => Some(u64::try_from(order).expect("a number of a write")),
            Err(GateError::Stale(_)) => None,
            other => panic!("the storage knows no faults: {other:?}"),
        }
    }
}

/// How one number ended.
pub(crate) fn of(storage: &RedisServer, name: &str) -> Sum {
    let fact = |what| storage.query::<Option<u64>>(&["HGET", &facts(name), what]);
    let (accepted, stale) = (fact("accepted"), fact("stale"));
    let shown = storage.query::<Option<u64>>(&["GET", &key(name)]);
    Sum {
        accepted: accepted.unwrap_or_default(),
        stale: stale.unwrap_or_default(),
        shown: shown.unwrap_or_default(),
    }
}

fn key(name: &str) -> String {
    format!("{{{name}}}")
}

fn facts(name: &str) -> String {
    format!("{{{name}}}:facts")
}
