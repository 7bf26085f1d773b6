use std::sync::Arc;

use leasehold::{
    fencing::RedisGate,
    redis::deadpool_redis::{self, Config, Runtime},
};
use redis::{AsyncCommands, Script};

use super::Subject;
use crate::{Failure, stamps};

const ADD: &str = "return redis.call('HINCRBY', KEYS[1], 'sold', ARGV[1])";

/// A value, and a script; both sides use the same pool.
pub(super) fn subjects(url: &str) -> Result<[Subject; 2], Failure> {
    let pool = Config::from_url(url).create_pool(Some(Runtime::Tokio1))?;
    let gate = RedisGate::new(pool.clone());
    Ok([set(&pool, &gate), script(&pool, &gate)])
}

fn set(pool: &deadpool_redis::Pool, gate: &RedisGate) -> Subject {
    let (pool, gate) = (pool.clone(), gate.clone());
    Subject {
        name: "redis, set",
        plain: Arc::new(move |task| {
            let pool = pool.clone();
            Box::pin(async move {
                let mut connection = pool.get().await?;
                connection.set::<_, _, ()>(format!("plain:{{{task}}}"), "7 left").await?;
                Ok(1)
            })
        }),
        gated: Arc::new(move |task| {
            let gate = gate.clone();
            Box::pin(async move {
                gate.set(&format!("gated:{{{task}}}"), "7 left", stamps::of(task)).await?;
                Ok(1)
            })
        }),
    }
}

fn script(pool: &deadpool_redis::Pool, gate: &RedisGate) -> Subject {
    let (pool, plain, gated) = (pool.clone(), Arc::new(Script::new(ADD)), gate.wrap(ADD));
    Subject {
        name: "redis, script",
        plain: Arc::new(move |task| {
            let (pool, script) = (pool.clone(), Arc::clone(&plain));
            Box::pin(async move {
                let mut connection = pool.get().await?;
                let key = format!("plain:script:{{{task}}}");
                let _: i64 = script.key(key).arg(1).invoke_async(&mut connection).await?;
                Ok(1)
            })
        }),
        gated: Arc::new(move |task| {
            let script = gated.clone();
            Box::pin(async move {
                let key = format!("gated:script:{{{task}}}");
                script.call(&key, [key.as_str()], ["1"], stamps::of(task)).await?;
                Ok(1)
            })
        }),
    }
}
