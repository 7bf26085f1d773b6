use std::sync::Arc;

use leasehold_core::{Script, Stamp};
use redis::Value;

use super::{gate::RedisGate, resource::check_keys};
use crate::error::GateError;

/// A Lua script that runs only behind a gate, in one step with its comparison.
///
/// Besides its `KEYS` and `ARGV` the script has the variables `FENCE` and `LEASE`, the admitted
/// stamp as texts. [`RedisGate::wrap`] makes it. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct FencedScript {
    gate: RedisGate,
    script: Arc<Script>,
}

impl RedisGate {
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
}

impl FencedScript {
    /// Runs the script if the resource's gate admits the stamp, and returns what it answers.
    ///
    /// The keys have to belong to the resource: each is the resource itself, or begins with it and
    /// `:`, as `orders:{42}:log` does with `orders:{42}`. The gate does not guard other keys; pass
    /// those to [`call_with_others`](Self::call_with_others). The gate does not see a key that the
    /// script itself makes. It does not see either that a part of the resource is used as a
    /// resource of its own, in [`RedisGate::set`] or in another call: then there is a second
    /// watermark, and an older holder can write under it. Give one key one resource. On a Cluster
    /// all keys have to be in the slot of the resource.
    ///
    /// A repeat with the same stamp runs the script again. A call that failed with an
    /// `Indeterminate` error may still run later, also after newer calls with the same stamp; see
    /// [`RedisGate::set`]. An error *within* the answer of the script is a part of the answer, as
    /// `redis::Value::ServerError`.
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
    /// In `KEYS` the script sees the keys of the resource first, and then the others. An older
    /// holder can still write to the others through another resource. So only read them, or write
    /// data for which the order does not matter.
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
