use std::{
    process,
    sync::atomic::{AtomicU64, Ordering},
    time::Duration,
};

use leasehold_core::{FencePolicy, FenceToken, LockName, Namespace, seam::Part};

use super::subject::Snapshot;
use crate::RedisServer;

/// The keys of a server that begin alike, as a subject looks at them behind the store's back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keyspace<'a> {
    pub(super) server: &'a RedisServer,
    pub(super) prefix: &'a str,
}

/// Ages every key like ARGV[1] by ARGV[2] ms, and with it every lease's beginning and the moment at
/// which each waiter queued and was heard, as the clock would.
const PASS: &str = "
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= tonumber(ARGV[2]) then
    redis.call('DEL', key)
  else
    if left >= 0 then redis.call('PEXPIRE', key, left - ARGV[2]) end
    if string.match(key, ':lease$') then
      local text = redis.call('GET', key)
      local function before(moment, unit)
        return string.format('%.0f', moment - ARGV[2] * unit)
      end
      text = string.gsub(text, '^(%S-,m)(%d+)', function(counter, marks)
        return counter .. before(marks, 1)
      end)
      text = string.gsub(text, '^(%S+ )([1-9]%d*)', function(counter, expires)
        return counter .. before(expires, 1)
      end)
      text = string.gsub(text, '^(%S+ %S+ %S+ %S+ )(%d+) (%d+)', function(rest, since, ends)
        -- What has as much left as passes is over.
        local time = redis.call('TIME')
        local upper = math.ceil(time[1] * 1000 + time[2] / 1000)
        local over = ends - upper <= tonumber(ARGV[2])
        ends = over and string.format('%.0f', upper - 1) or before(ends, 1)
        return rest .. before(since, 1000) .. ' ' .. ends
      end)
      redis.call('SET', key, text, 'KEEPTTL')
    elseif string.match(key, ':withdrawn$') then
      for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do
        redis.call('ZINCRBY', key, '-' .. ARGV[2], id)
      end
    elseif string.match(key, ':queue$') then
      for _, runtime in ipairs(redis.call('ZRANGE', key, 0, -1)) do
        redis.call('ZINCRBY', key, '-' .. ARGV[2] .. '000', runtime)
      end
    elseif string.match(key, ':waiters$') then
      local row = redis.call('HGETALL', key)
      for i = 1, #row, 2 do
        local before, heard, after = string.match(row[i + 1], '^(%S+ %S+ )(%d+)(.*)$')
        heard = string.format('%.0f', heard - ARGV[2] * 1000)
        redis.call('HSET', key, row[i], before .. heard .. after)
      end
    end
  end
end
return 'passed'";

/// Every key like ARGV[1] with its content, sorted, and the milliseconds that it has left, and of a
/// lock that is held also those that the lease has left; without the moments at which waiters were
/// heard and marks expire, which a repeat moves on.
const SNAPSHOT: &str = "
local all = {}
local function add(key, parts, left)
  all[#all + 1] = key
  all[#all + 1] = parts
  all[#all + 1] = tostring(left)
end
local time = redis.call('TIME')
local millis = math.floor(time[1] * 1000 + time[2] / 1000)
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local parts
  if string.match(key, ':lease$') then
    parts = redis.call('GET', key)
    local ends = string.match(parts, '^%S+ %S+ %S+ %S+ %S+ (%d+)')
    if ends then add(key .. ' lease', '', math.max(ends - millis, 0)) end
    parts = string.gsub(parts, '^(%S-,m)%d+', '%1')
    parts = string.gsub(parts, '^(%S+) %S+', '%1')
    parts = string.gsub(parts, '^(%S+ %S+ %S+ %S+) %d+', '%1')
  elseif string.match(key, ':waiters$') then
    local row, fields = redis.call('HGETALL', key), {}
    for i = 1, #row, 2 do
      fields[#fields + 1] = row[i] .. '=' .. string.gsub(row[i + 1], '^(%S+ %S+ )%d+', '%1')
    end
    table.sort(fields)
    parts = table.concat(fields, ' ')
  elseif string.match(key, ':withdrawn$') then
    local ids = redis.call('ZRANGE', key, 0, -1)
    table.sort(ids)
    parts = table.concat(ids, ' ')
  else
    parts = table.concat(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'), ' ')
  end
  add(key, parts, redis.call('PTTL', key))
end
return all";

/// Every key like ARGV[1] that has no end.
const IMMORTAL: &str = "
local immortal = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  if redis.call('PTTL', key) == -1 then immortal[#immortal + 1] = key end
end
return immortal";

/// Deletes every key like ARGV[1].
const LOSE: &str = "
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do redis.call('DEL', key) end
return 'lost'";

/// A namespace that no other subject has, and how the names of its keys begin.
pub(super) fn new_namespace() -> (Namespace, String) {
    static NEXT: AtomicU64 = AtomicU64::new(0);
    let number = NEXT.fetch_add(1, Ordering::Relaxed);
    let namespace = format!("case-{}-{number}", process::id());
    let prefix = format!("{namespace}:");
    (Namespace::new(namespace).expect("letters, digits and dashes"), prefix)
}

impl Keyspace<'_> {
    /// The time of the server, in microseconds.
    pub(super) fn micros(&self) -> u64 {
        let (seconds, micros): (u64, u64) = self.server.query(&["TIME"]);
        seconds * 1_000_000 + micros
    }

    /// Lets time pass.
    pub(super) fn pass(&self, time: Duration) {
        self.server.command(&["EVAL", PASS, "0", &self.pattern(), &time.as_millis().to_string()]);
    }

    /// Loses everything.
    pub(super) fn lose(&self) {
        self.server.command(&["EVAL", LOSE, "0", &self.pattern()]);
    }

    /// Loses one part of what is known of a name, and nothing else.
    pub(super) fn lose_part(&self, name: &LockName, part: Part) {
        let kind = match part {
            Part::Lock => "lease",
            Part::Queue => "queue",
            Part::Waiters => "waiters",
            Part::Marks => "withdrawn",
        };
        let pattern = format!("{}*{name}*:{kind}", self.prefix);
        self.server.command(&["EVAL", LOSE, "0", &pattern]);
    }

    /// Leaves a name one token.
    pub(super) fn exhaust(&self, key: &str) {
        let text = format!("{} 0", FenceToken::MAX - 1);
        self.server.command(&["SET", key, &text, "PX", "604800000"]);
    }

    /// Everything that is there.
    pub(super) fn snapshot(&self) -> Snapshot {
        let all: Vec<String> = self.server.query(&["EVAL", SNAPSHOT, "0", &self.pattern()]);
        let piece = |part: &[String]| {
            let left = part[2].parse().expect("PTTL is a number, and no key lives for ever");
            (part[0].clone(), (part[1].clone(), Duration::from_millis(left)))
        };
        all.chunks(3).map(piece).collect()
    }

    /// What would stay for ever, but for the counters that are meant to.
    pub(super) fn left_behind(&self, policy: FencePolicy) -> Vec<String> {
        let is_meant_to = |key: &str| policy == FencePolicy::Counter && key.ends_with(":lease");
        let all: Vec<String> = self.server.query(&["EVAL", IMMORTAL, "0", &self.pattern()]);
        all.into_iter().filter(|key| !is_meant_to(key)).collect()
    }

    /// Namespaces have no character that means anything to `KEYS`.
    fn pattern(&self) -> String {
        format!("{}*", self.prefix)
    }
}
