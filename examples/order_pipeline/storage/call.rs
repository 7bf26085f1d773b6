use std::{fmt::Display, time::Duration};

use leasehold::{Stamp, fencing::FencedScript};
use redis::{FromRedisValue, Value};

use super::StorageError;
use crate::pause::pause;

/// One call of a fenced script, repeated while the server is briefly out of reach.
pub(super) struct Call<'a> {
    script: &'a FencedScript,
    resource: &'a str,
    stamp: Stamp,
    keys: Vec<String>,
    args: Vec<String>,
}

impl<'a> Call<'a> {
    const ATTEMPTS: u32 = 5;
    const PAUSE: Duration = Duration::from_millis(200);

    /// A call on a resource, which is the only key unless others are named.
    pub(super) fn of(script: &'a FencedScript, resource: &'a str, stamp: Stamp) -> Self {
        Self { script, resource, stamp, keys: Vec::new(), args: Vec::new() }
    }

    pub(super) fn key(mut self, key: String) -> Self {
        self.keys.push(key);
        self
    }

    pub(super) fn arg(mut self, arg: impl Display) -> Self {
        self.args.push(arg.to_string());
        self
    }

    pub(super) async fn done(self) -> Result<(), StorageError> {
        self.value().await.map(drop)
    }

    pub(super) async fn answer<T: FromRedisValue>(self) -> Result<T, StorageError> {
        let value = self.value().await?;
        redis::from_redis_value_ref(&value).map_err(|_| StorageError::Answer(format!("{value:?}")))
    }

    async fn value(mut self) -> Result<Value, StorageError> {
        if self.keys.is_empty() {
            self.keys.push(self.resource.to_owned());
        }
        for _ in 1..Self::ATTEMPTS {
            match self.once().await {
                Err(error) if error.is_transient() => pause(Self::PAUSE).await,
                outcome => return outcome,
            }
        }
        self.once().await
    }

    async fn once(&self) -> Result<Value, StorageError> {
        let args = self.args.iter().map(String::as_str);
        Ok(self.script.call(self.resource, &self.keys, args, self.stamp).await?)
    }
}
