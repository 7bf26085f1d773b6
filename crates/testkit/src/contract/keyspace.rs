use std::time::Duration;

use leasehold_core::{FencePolicy, FenceToken, LockName, seam::Part};

use super::subject::Snapshot;
use crate::RedisServer;

/// The keys of a server that begin alike, as a subject looks at them behind the store's back.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keyspace<'a> {
    pub(super) server: &'a RedisServer,
    pub(super) prefix: &'a str,
}

/// Ages every key like ARGV[1] by ARGV[2] ms, and with it every lease's beginning and the moment at
/// which each waiter was heard, as the clock would.
const PASS: &str = "
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local left = redis.call('PTTL', key)
  if left >= 0 and left <= tonumber(ARGV[2]) then
    redis.call('DEL', key)
  else
    if left >= 0 then redis.call('PEXPIRE', key, left - ARGV[2]) end
    if string.match(key, ':lease$') then
      local before = redis.call('HMGET', key, 'since', 'end', 'expires', 'marks')
      for i, field in ipairs({'since', 'end', 'expires', 'marks'}) do
        local by = '-' .. ARGV[2] .. (field == 'since' and '000' or '')
        if before[i] then redis.call('HINCRBY', key, field, by) end
      end
      -- What has as much left as passes is over.
      local time = redis.call('TIME')
      local upper = math.ceil(time[1] * 1000 + time[2] / 1000)
      local ends = tonumber(before[2] or 0)
      if ends > 0 and ends - upper <= tonumber(ARGV[2]) then
        redis.call('HSET', key, 'end', upper - 1 .. '')
      end
    elseif string.match(key, ':withdrawn$') then
      for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do
        redis.call('ZINCRBY', key, '-' .. ARGV[2], id)
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
/// hash with a lease also those that the lease has left; without the moments at which waiters were
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
  if redis.call('TYPE', key).ok == 'hash' then
    local row, fields = redis.call('HGETALL', key), {}
    for i = 1, #row, 2 do
      local name, value = row[i], row[i + 1]
      if string.match(key, ':waiters$') then
        value = string.gsub(value, '^(%S+ %S+ )%d+', '%1')
      elseif name == 'end' then
        add(key .. ' lease', '', math.max(value - millis, 0))
        value = 'a time'
      elseif name == 'expires' or name == 'marks' then
        value = 'a time'
      end
      fields[#fields + 1] = name .. '=' .. value
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

/// Deletes every key like ARGV[1], or only the fields ARGV[2..] of it.
const LOSE: &str = "
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  if ARGV[2] then redis.call('HDEL', key, unpack(ARGV, 2)) else redis.call('DEL', key) end
end
return 'lost'";

/// The fields of a hash that are the lease.
const LEASE: &[&str] = &["holder", "fence", "end", "since", "label", "holds", "hold", "kept"];

impl Keyspace<'_> {
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
        let (kind, fields) = match part {
            Part::Lease => ("lease", LEASE),
            Part::Counter => ("lease", &["counter"][..]),
            Part::Lock => ("lease", &[][..]),
            Part::Queue => ("queue", &[][..]),
            Part::Waiters => ("waiters", &[][..]),
            Part::Marks => ("withdrawn", &[][..]),
        };
        let pattern = format!("{}*{name}*:{kind}", self.prefix);
        let mut command = vec!["EVAL", LOSE, "0", &pattern];
        command.extend(fields);
        self.server.command(&command);
    }

    /// Loses the fence counter of a name that was granted.
    pub(super) fn lose_counter(&self, key: &str) {
        let lost: u32 = self.server.query(&["HDEL", key, "counter"]);
        assert_eq!(lost, 1, "{key} has a counter to lose");
    }

    /// Leaves a name one token.
    pub(super) fn exhaust(&self, key: &str) {
        let last_but_one = (FenceToken::MAX - 1).to_string();
        self.server.command(&["HSET", key, "v", "2", "counter", &last_but_one]);
        self.server.command(&["PEXPIRE", key, "604800000"]);
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
