use std::sync::Arc;

use leasehold_core::{Script, Stamp};
use redis::Value;

use super::gate::RedisGate;
use crate::error::GateError;

/// A Lua script that runs only behind a gate, in one step with its comparison.
///
/// Besides its `KEYS` and `ARGV` the script sees the `FENCE` and `LEASE` that were admitted, as
/// texts. Made by [`RedisGate::wrap`]. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct FencedScript {
    gate: RedisGate,
    script: Arc<Script>,
}

impl FencedScript {
    pub(super) fn new(gate: RedisGate, script: &str) -> Self {
        // The script's first line stays the first, so that the lines in its errors are its own.
        let (head, tail) = ("local body = function(KEYS, ARGV, FENCE, LEASE) ", "\nend\n");
        let (check, run) = (include_str!("../lua/gate.lua"), include_str!("../lua/wrap.lua"));
        let script = [head, script, tail, check, run].concat();
        Self { gate, script: Arc::new(Script::new(script)) }
    }

    /// Runs the script if the resource's gate admits the stamp, and returns what it answers.
    ///
    /// On a Cluster all keys have to be in the slot of the resource. A repeat with the same stamp
    /// runs the script again.
    ///
    /// # Errors
    ///
    /// - [`GateError::Stale`] when another holder has been admitted; the script has not run.
    /// - [`GateError::Body`] when the script failed by itself, or answered with an error.
    /// - [`GateError::Store`] when the server failed; of kind `Corrupt` when the watermark is not
    ///   one.
    /// - [`GateError::Resource`] when the resource cannot have a watermark.
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
        let keys = keys.into_iter().map(Into::into).collect();
        let args = args.into_iter().map(Into::into).collect();
        let passed = self.gate.pass(&self.script, resource, keys, args, presented).await;
        passed.map(|(_, answer)| answer)
    }
}
