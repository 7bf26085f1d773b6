//! The gate on a Redis server: its own `SET`, and a script of the user's.

use std::{sync::Arc, time::Duration};

use leasehold::{
    Stamp,
    fencing::{FenceGate, RedisGate},
    redis::{RedisConfig, RedisPool},
};
use leasehold_testkit::{
    RedisServer,
    contract::Task,
    gates::{BehindRelay, Faults, GateSubject, Outcome, Relay, Upstream},
};
use redis::aio::MultiplexedConnection;

use super::words::outcome;

/// A server, a relay before it, and a gate behind that.
#[derive(Debug)]
struct Redis {
    gate: RedisGate,
    relay: Relay,
    url: String,
    server: RedisServer,
}

impl Redis {
    async fn start() -> Self {
        let server = RedisServer::start();
        let relay = Relay::before(Upstream::Unix(server.socket().to_owned())).await;
        let url = format!("redis://127.0.0.1:{}", relay.port());
        let config = RedisConfig::new(&url).unwrap().command_timeout(Duration::from_secs(1));
        Self { gate: RedisGate::new(RedisPool::new(&config).unwrap()), relay, url, server }
    }

    /// A name with a hash tag has any braces; one without must not have the brace that closes one.
    /// The names of watermarks are those of no value.
    fn accepts(name: &str) -> bool {
        if ["{b}:watermark", "watermark:{b}"].contains(&name) {
            return false;
        }
        let tag = name.split_once('{').and_then(|(_, rest)| rest.split_once('}'));
        let has_tag = tag.is_some_and(|(tag, _)| !tag.is_empty());
        !name.is_empty() && !name.contains('\0') && (has_tag || !name.contains('}'))
    }

    fn read(&self, name: &str) -> Option<String> {
        self.server.query(&["GET", name])
    }

    async fn write_past(&self, name: &str, value: &str) -> Outcome {
        // A client without timeouts hears of a lost answer by the end of its connection.
        let client = redis::Client::open(&*self.url).unwrap();
        let config = redis::AsyncConnectionConfig::new().set_response_timeout(None);
        let connection = client.get_multiplexed_async_connection_with_config(&config).await;
        let mut connection: MultiplexedConnection = connection.unwrap();
        match redis::cmd("SET").arg(name).arg(value).query_async::<()>(&mut connection).await {
            Ok(()) => Outcome::Accepted,
            Err(_) => Outcome::Unknown,
        }
    }
}

impl BehindRelay for Redis {
    fn relay(&self) -> &Relay {
        &self.relay
    }
}

/// The gate's own `SET`.
#[derive(Debug)]
pub(crate) struct SetSubject(Redis);

/// A script behind the gate.
#[derive(Debug)]
pub(crate) struct ScriptSubject(Redis);

impl SetSubject {
    async fn write_gated(&self, name: &str, value: &str, presented: Stamp) -> Outcome {
        outcome(self.0.gate.set(name, value, presented).await)
    }
}

impl ScriptSubject {
    async fn write_gated(&self, name: &str, value: &str, presented: Stamp) -> Outcome {
        let script = self.0.gate.wrap("return redis.call('SET', KEYS[1], ARGV[1])");
        outcome(script.call(name, [name], [value], presented).await)
    }
}

macro_rules! on_redis {
    ($($subject:ident),*) => { $(
        impl GateSubject for $subject {
            fn start() -> Task<'static, Arc<dyn GateSubject>> {
                Box::pin(async { Arc::new(Self(Redis::start().await)) as _ })
            }

            fn accepts(&self, name: &str) -> bool {
                Redis::accepts(name)
            }

            fn write<'a>(
                &'a self,
                name: &'a str,
                value: &'a str,
                presented: Stamp,
            ) -> Task<'a, Outcome> {
                Box::pin(self.write_gated(name, value, presented))
            }

            fn advance<'a>(&'a self, name: &'a str, presented: Stamp) -> Task<'a, Outcome> {
                Box::pin(async move { outcome(self.0.gate.advance(name, presented).await) })
            }

            fn read<'a>(&'a self, name: &'a str) -> Task<'a, Option<String>> {
                Box::pin(async move { self.0.read(name) })
            }

            fn write_past<'a>(&'a self, name: &'a str, value: &'a str) -> Task<'a, Outcome> {
                Box::pin(self.0.write_past(name, value))
            }

            fn faults(&self) -> Option<&dyn Faults> {
                Some(&self.0)
            }
        }
    )* };
}

on_redis!(SetSubject, ScriptSubject);
