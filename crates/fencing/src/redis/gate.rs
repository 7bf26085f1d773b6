use std::{
    sync::{Arc, LazyLock},
    time::Duration,
};

use leasehold_core::{Replication, SettingError, Stamp, StoreError};
use leasehold_redis::{AddressError, RedisAddress, RedisConfig, RedisPool, Script};
use redis::Value;

use super::{
    reply,
    resource::{check_keys, watermark_key},
};
use crate::{
    error::GateError,
    gate::{Admitted, FenceGate, GateFuture, Refusals},
};

static ADMIT: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(include_str!("../lua/gate.lua"), include_str!("../lua/admit.lua")))
});
static SET: LazyLock<Script> = LazyLock::new(|| {
    Script::new(concat!(include_str!("../lua/gate.lua"), include_str!("../lua/set.lua")))
});

/// Watermarks on a Redis server, beside the values that they guard.
///
/// A resource is the key of a value. Its watermark is a string `<fence> <lease>` in the same
/// cluster slot: `orders:{42}:watermark` for `orders:{42}`, and `watermark:{orders:42}` for
/// `orders:42`, which has no hash tag. One script compares and writes. The key of a watermark is
/// refused as the key of a value.
///
/// A trap: **give one key one resource.** A script may write `orders:{42}:log` as a part of the
/// resource `orders:{42}`, and [`set`](Self::set) would treat the same key as a resource of its
/// own: two watermarks, and neither sees the writes under the other. Write a part only through the
/// resource that contains it, in every process.
///
/// A gate guards only writes that go through it. Its watermarks are as durable as the server, which
/// may lose them in a failover or evict them. Set `maxmemory-policy` to `noeviction`, or to a
/// `volatile-*` policy if no watermark has a time to live. Cloning is cheap.
///
/// # Examples
///
/// ```no_run
/// # async fn example(locks: leasehold::LockRuntime) -> Result<(), Box<dyn std::error::Error>> {
/// use leasehold::fencing::{FenceGate, RedisGate};
///
/// let gate = RedisGate::connect("redis://127.0.0.1:6379").await?;
/// let guard = locks.lock("orders/42")?.acquire().await?;
/// gate.advance("orders:{42}", guard.stamp()).await?; // from here on, earlier holders are refused
/// gate.set("orders:{42}", "paid", guard.stamp()).await?; // compares and writes in one step
/// # Ok(())
/// # }
/// ```
#[derive(Debug, Clone)]
#[must_use = "a gate does nothing itself, write through it"]
pub struct RedisGate {
    pool: RedisPool,
    watermark_ttl: Option<Duration>,
    acks: Replication,
    refusals: Arc<Refusals>,
}

impl RedisGate {
    /// Makes a gate on the servers of an address, with pooled connections of its own, and asks them
    /// once whether they answer.
    ///
    /// The address is one that `LockRuntime::connect` takes, except that of a quorum. For
    /// certificates, credentials or other settings, make a [`RedisPool`] and use [`new`](Self::new).
    ///
    /// # Errors
    ///
    /// [`StoreError`] of kind `Config` when the address is not understood, or a right is missing;
    /// otherwise when the server does not answer within 2 s.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves nothing behind.
    pub async fn connect<A>(address: A) -> Result<Self, StoreError>
    where
        A: TryInto<RedisAddress, Error: Into<AddressError>>,
    {
        let pool = RedisPool::new(&RedisConfig::new(address)?)?;
        pool.call(&Script::new("return 1"), None, None).await?;
        Ok(Self::new(pool))
    }

    /// Makes a gate on pooled connections: a [`RedisPool`], or with the feature `deadpool` a
    /// `deadpool_redis::Pool` of the version that Leasehold re-exports.
    pub fn new(pool: impl Into<RedisPool>) -> Self {
        let refusals = Arc::new(Refusals::new("redis"));
        Self { pool: pool.into(), watermark_ttl: None, acks: Replication::NONE, refusals }
    }

    /// Sets how long a watermark lives after the last admission, 1 s to 3650 days. Default: forever.
    ///
    /// Two traps: once a watermark has expired, the gate accepts the next writer, however old its
    /// fence, so choose more than the longest pause of a writer. And a `volatile-*` policy of the
    /// server may evict it at any moment: use `noeviction`.
    ///
    /// # Errors
    ///
    /// [`SettingError`] below 1 s, and above 3650 days.
    pub fn watermark_ttl(mut self, ttl: Duration) -> Result<Self, SettingError> {
        let range = Duration::from_secs(1)..=Duration::from_secs(3650 * 24 * 60 * 60);
        self.watermark_ttl = Some(SettingError::check("watermark ttl", ttl, range)?);
        Ok(self)
    }

    /// Sets which acknowledgements an admitted write needs before it is a success. Default: none, so
    /// that a failover may lose it.
    ///
    /// The wait travels in one round trip with the write. If fewer acknowledge in time, the write
    /// fails as [`GateError::Store`] of kind `Indeterminate`, whose error
    /// [`is_unacknowledged`](leasehold_core::StoreError::is_unacknowledged): the master has it, and
    /// a failover may lose it. Repeat it with the same stamp until it is a success. A repeat runs a
    /// wrapped script again, so make what it does the same when it is done twice.
    pub fn replication(self, replication: Replication) -> Self {
        Self { acks: replication, ..self }
    }

    /// Writes a value if the stamp is admitted, in one step with the comparison.
    ///
    /// It is a plain `SET`, which replaces any value of the key and removes its time to live. You
    /// may repeat it with the same stamp: it writes again or is refused, and undoes no write of
    /// another lease.
    ///
    /// The gate does not order the writes of one lease. After an `Indeterminate` error or a dropped
    /// future, the write may still replace the next one of the same lease. If that matters, acquire
    /// the lock again: after the first write with the new stamp, the late one is refused.
    ///
    /// # Errors
    ///
    /// - [`GateError::Stale`] when another holder has been admitted; nothing was written.
    /// - [`GateError::Store`] when the server failed; of kind `Corrupt` when the watermark is not
    ///   a valid stamp; of kind `Indeterminate` when [too few](Self::replication) have the write.
    /// - [`GateError::Resource`] when the key cannot have a watermark, or is the key of one.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the write back: it may or may not happen.
    pub async fn set(
        &self,
        key: &str,
        value: impl Into<Vec<u8>>,
        presented: Stamp,
    ) -> Result<Admitted, GateError> {
        let (keys, args) = (vec![key.to_owned()], vec![value.into()]);
        self.pass(&SET, key, keys, args, presented).await.map(|(admitted, _)| admitted)
    }

    /// Wraps a Lua script of your own, so that it runs only if the stamp is admitted.
    ///
    /// The script sees its own `KEYS` and `ARGV`. All its keys have to belong to the
    /// resource, see [`FencedScript::call`]. It must not begin with a shebang (`#!lua`).
    ///
    /// ```no_run
    /// # use leasehold_fencing::{GateError, RedisGate, Stamp};
    /// # async fn example(gate: RedisGate, stamp: Stamp) -> Result<(), GateError> {
    /// let take = gate.wrap("return redis.call('HINCRBY', KEYS[1], 'stock', -ARGV[1])");
    /// let left = take.call("article:7", ["article:7"], ["2"], stamp).await?;
    /// # Ok(())
    /// # }
    /// ```
    #[must_use]
    pub fn wrap(&self, script: &str) -> FencedScript {
        // The script's first line stays the first, so that the lines in its errors are its own.
        let (head, tail) = ("local body = function(KEYS, ARGV, FENCE, LEASE) ", "\nend\n");
        let (check, run) = (include_str!("../lua/gate.lua"), include_str!("../lua/wrap.lua"));
        let script = Script::new([head, script, tail, check, run].concat());
        FencedScript { gate: self.clone(), script: Arc::new(script) }
    }

    /// Calls a script that begins with `gate.lua`.
    pub(super) async fn pass(
        &self,
        script: &Script,
        resource: &str,
        mut keys: Vec<String>,
        mut args: Vec<Vec<u8>>,
        presented: Stamp,
    ) -> Result<(Admitted, Value), GateError> {
        let Stamp { fence, lease } = presented;
        let ttl = self.watermark_ttl.map_or(0, |ttl| ttl.as_millis());
        keys.push(watermark_key(resource)?);
        let own = [fence.to_string(), lease.to_string(), ttl.to_string()];
        args.extend(own.map(String::into_bytes));
        let call = self.pool.call_acknowledged(script, keys, args, self.acks, reply::is_admitted);
        match call.await {
            Ok(answer) => reply::read(answer, resource, presented, &self.refusals),
            Err(error) => Err(reply::unanswered(error, resource)),
        }
    }
}

impl FenceGate for RedisGate {
    fn admit<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a> {
        Box::pin(async move {
            let passed = self.pass(&ADMIT, resource, Vec::new(), Vec::new(), presented);
            passed.await.map(|(admitted, _)| admitted)
        })
    }
}

/// A Lua script that runs only behind a gate, in one step with its comparison.
///
/// Besides its `KEYS` and `ARGV` the script has the variables `FENCE` and `LEASE`, the admitted
/// stamp as texts. [`RedisGate::wrap`] makes it. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct FencedScript {
    gate: RedisGate,
    script: Arc<Script>,
}

impl FencedScript {
    /// Runs the script if the resource's gate admits the stamp, and returns what it answers.
    ///
    /// The keys have to belong to the resource: each is the resource itself, or begins with it and
    /// `:`, as `orders:{42}:log` does with `orders:{42}`. Pass others, which the gate does not
    /// guard, to [`call_with_others`](Self::call_with_others). The gate sees neither a key that the
    /// script itself makes, nor that a part of the resource is [used as one of its own](RedisGate).
    /// On a Cluster all keys have to be in the slot of the resource.
    ///
    /// A repeat with the same stamp runs the script again. A call that failed as `Indeterminate`
    /// may still run later, see [`RedisGate::set`]. An error *within* the answer of the script is a
    /// part of the answer, as `Value::ServerError`. `FromRedisValue` of `leasehold::redis::client`
    /// reads an answer.
    ///
    /// # Errors
    ///
    /// - [`GateError::Stale`] when another holder has been admitted; the script has not run.
    /// - [`GateError::Body`] when the script failed by itself, or its answer is an error.
    /// - [`GateError::Store`] when the server failed; of kind `Corrupt` when the watermark is not
    ///   a valid stamp.
    /// - [`GateError::Resource`] when the resource cannot have a watermark, or a key is a watermark
    ///   or does not belong to the resource; nothing was sent.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the call back: it may or may not run.
    pub async fn call(
        &self,
        resource: &str,
        keys: impl IntoIterator<Item = impl Into<String>>,
        args: impl IntoIterator<Item = impl Into<Vec<u8>>>,
        presented: Stamp,
    ) -> Result<Value, GateError> {
        self.call_with_others(resource, keys, [""; 0], args, presented).await
    }

    /// Runs the script as [`call`](Self::call) does, with additional keys that the gate does not
    /// guard.
    ///
    /// In `KEYS` the others come last. An older holder can still write to them through another
    /// resource: only read them, or write data for which the order does not matter.
    ///
    /// # Errors
    ///
    /// Those of [`call`](Self::call). The others need not belong to the resource, but none may be a
    /// watermark.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future does not take the call back: it may or may not run.
    pub async fn call_with_others(
        &self,
        resource: &str,
        keys: impl IntoIterator<Item = impl Into<String>>,
        others: impl IntoIterator<Item = impl Into<String>>,
        args: impl IntoIterator<Item = impl Into<Vec<u8>>>,
        presented: Stamp,
    ) -> Result<Value, GateError> {
        let mut keys: Vec<String> = keys.into_iter().map(Into::into).collect();
        let others: Vec<String> = others.into_iter().map(Into::into).collect();
        check_keys(resource, &keys, &others)?;
        keys.extend(others);
        let args = args.into_iter().map(Into::into).collect();
        let passed = self.gate.pass(&self.script, resource, keys, args, presented).await;
        passed.map(|(_, answer)| answer)
    }
}
