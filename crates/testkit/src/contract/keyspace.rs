use std::time::Duration;

use leasehold_core::{Fence, FencePolicy, LockName, seam::Part};

use super::subject::Snapshot;
use crate::RedisServer;

/// How a server keeps a lock: as one that decides alone, or as one of a quorum.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Layout {
    /// It decides alone.
    Alone,
    /// It is one of several that do not know each other.
    Node,
}

/// The keys of a server that begin alike, as a subject looks at them behind the store's back. Boot marks
/// stay out of it.
#[derive(Debug, Clone, Copy)]
pub(super) struct Keyspace<'a> {
    pub(super) server: &'a RedisServer,
    pub(super) prefix: &'a str,
    pub(super) layout: Layout,
}

/// Ages every key like ARGV[1] by ARGV[2] ms, and with it every lease's beginning and the moment at
/// which each waiter queued and was heard, as the clock would.
const PASS: &str = "
local time = redis.call('TIME')
local upper = math.ceil(time[1] * 1000 + time[2] / 1000)
-- The end of a lease, ms; what has as much left as passes is over.
local function end_of(ends)
  local over = ends - upper <= tonumber(ARGV[2])
  return string.format('%.0f', over and upper - 1 or ends - ARGV[2])
end
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
      local sub = string.sub
      if sub(text, 8, 8) == 'm' then text = sub(text, 1, -14) .. before(sub(text, -13), 1) end
      if sub(text, 30, 42) ~= '0000000000000' then
        text = sub(text, 1, 29) .. before(sub(text, 30, 42), 1) .. sub(text, 43)
      end
      if #text > 91 then
        local since, ends = sub(text, 61, 76), sub(text, 78, 90)
        text = sub(text, 1, 60) .. before(since, 1000) .. ' ' .. end_of(ends) .. sub(text, 91)
      end
      redis.call('SET', key, text, 'KEEPTTL')
    elseif string.match(key, ':readers$') then
      for _, id in ipairs(redis.call('ZRANGE', key, 0, -1)) do
        redis.call('ZADD', key, end_of(redis.call('ZSCORE', key, id)), id)
      end
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

/// At a node of a quorum, ages every key like ARGV[1] by ARGV[2] ms, and with it every moment that it tells.
const PASS_AT_NODE: &str = "
local function before(moment, unit)
  return string.format('%.0f', math.max(moment - ARGV[2] * unit, 0))
end
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  local left = redis.call('PTTL', key)
  -- A key lives a little longer than its content, which counts in whole milliseconds.
  if left >= 0 and left <= ARGV[2] + 2 then
    redis.call('DEL', key)
  elseif left >= 0 then
    redis.call('PEXPIRE', key, left - ARGV[2])
    if string.match(key, ':lease$') then
      local text = redis.call('GET', key)
      text = string.gsub(text, '^(%S+ %d+ )(%d+)', function(counter, expires)
        return counter .. before(expires, 1)
      end)
      text = string.gsub(text, '^(%S+ %d+ %d+ %S+ %d+ %d+ %d+ )(%d+) (%d+)', function(rest, since, ends)
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
    elseif string.match(key, ':waiters$') then
      local row = redis.call('HGETALL', key)
      for i = 1, #row, 2 do
        local who, until_, label = string.match(row[i + 1], '^(%S+) (%d+)(.*)$')
        redis.call('HSET', key, row[i], who .. ' ' .. before(until_, 1) .. label)
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
    local sub = string.sub
    if sub(parts, 8, 8) == 'm' then parts = sub(parts, 1, -15) end
    if #parts > 91 then add(key .. ' lease', '', math.max(sub(parts, 78, 90) - millis, 0)) end
    parts = sub(parts, 1, 29) .. sub(parts, 43, 77) .. sub(parts, 91)
  elseif string.match(key, ':waiters$') then
    local row, fields = redis.call('HGETALL', key), {}
    for i = 1, #row, 2 do
      fields[#fields + 1] = row[i] .. '=' .. string.gsub(row[i + 1], '^(%S+ %S+ )%d+', '%1')
    end
    table.sort(fields)
    parts = table.concat(fields, ' ')
  elseif string.match(key, ':withdrawn$') or string.match(key, ':readers$') then
    local ids = redis.call('ZRANGE', key, 0, -1)
    table.sort(ids)
    parts = table.concat(ids, ' ')
  else
    parts = table.concat(redis.call('ZRANGE', key, 0, -1, 'WITHSCORES'), ' ')
  end
  add(key, parts, redis.call('PTTL', key))
end
return all";

/// At a node of a quorum, every key like ARGV[1] with its content, sorted, and the milliseconds that it has left, and of a
/// lock that is held also those that the lease has left; without the moments that a repeat moves on.
const SNAPSHOT_OF_NODE: &str = "
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
    local ends = string.match(parts, '^%S+ %d+ %d+ %S+ %d+ %d+ %d+ %d+ (%d+)')
    if ends then add(key .. ' lease', '', math.max(ends - millis, 0)) end
    parts = string.gsub(parts, '^(%S+ %d+) %d+', '%1')
    parts = string.gsub(parts, '^(%S+ %d+ %S+ %d+ %d+ %d+ %d+) %d+', '%1')
  elseif string.match(key, ':waiters$') then
    local row, fields = redis.call('HGETALL', key), {}
    for i = 1, #row, 2 do
      fields[#fields + 1] = row[i] .. '=' .. string.match(row[i + 1], '^(%S+)')
    end
    table.sort(fields)
    parts = table.concat(fields, ' ')
  elseif string.match(key, ':withdrawn$') then
    local ids = redis.call('ZRANGE', key, 0, -1)
    table.sort(ids)
    parts = table.concat(ids, ' ')
  end
  if parts then add(key, parts, redis.call('PTTL', key)) end
end
return all";

/// Every key like ARGV[1] that has no end, but for boot marks.
const IMMORTAL: &str = "
local immortal = {}
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  if redis.call('PTTL', key) == -1 and not string.match(key, ':boot$') then
    immortal[#immortal + 1] = key
  end
end
return immortal";

/// Deletes every key like ARGV[1], but for boot marks.
const LOSE: &str = "
for _, key in ipairs(redis.call('KEYS', ARGV[1])) do
  if not string.match(key, ':boot$') then redis.call('DEL', key) end
end
return 'lost'";

impl Keyspace<'_> {
    /// Lets time pass.
    pub(super) fn pass(&self, time: Duration) {
        let script = if self.layout == Layout::Alone { PASS } else { PASS_AT_NODE };
        self.server.command(&["EVAL", script, "0", &self.pattern(), &time.as_millis().to_string()]);
    }

    /// Loses everything, and does not notice.
    pub(super) fn lose(&self) {
        self.server.command(&["EVAL", LOSE, "0", &self.pattern()]);
    }

    /// Loses one part of what is known of a name, and nothing else. A node has no line.
    pub(super) fn lose_part(&self, name: &LockName, part: Part) {
        let kind = match part {
            Part::Lock => "lease",
            Part::Queue => "queue",
            Part::Waiters => "waiters",
            Part::Marks => "withdrawn",
            Part::Readers => "readers",
        };
        let pattern = format!("{}*{name}*:{kind}", self.prefix);
        self.server.command(&["EVAL", LOSE, "0", &pattern]);
    }

    /// Leaves a lease one token.
    pub(super) fn exhaust(&self, key: &str) {
        let last = Fence::MAX - 1;
        let text = match self.layout {
            Layout::Alone => format!("v4 x------- {last} 0000000000000"),
            Layout::Node => format!("v5 {last} 0"),
        };
        self.server.command(&["SET", key, &text, "PX", "604800000"]);
    }

    /// Everything that is there.
    pub(super) fn snapshot(&self) -> Snapshot {
        let script = if self.layout == Layout::Alone { SNAPSHOT } else { SNAPSHOT_OF_NODE };
        let all: Vec<String> = self.server.query(&["EVAL", script, "0", &self.pattern()]);
        let piece = |part: &[String]| {
            let left = part[2].parse().expect("PTTL is a number, and no key lives for ever");
            let key = format!("{:?} {}", self.server.port(), part[0]);
            (key, (part[1].clone(), Duration::from_millis(left)))
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
