use std::{collections::BTreeMap, time::Duration};

use futures_util::future::join_all;
use leasehold_core::Replication;
use leasehold_redis::{Endpoint, RedisConfig, decode::text, shared};
use redis::{Value, cmd};

use super::client::ServerClient;
use crate::{
    ClockOffset,
    facts::{ClusterTold, Fields, LockKeys, Mark, NotRead, Reading, RoundTrips},
};

/// The sections of `INFO` that the rules read. Before Redis 7, one command has one section.
const SECTIONS: [&str; 4] = ["memory", "persistence", "replication", "keyspace"];

/// The settings that the rules read: none of them is secret. Each is asked for by its full name,
/// because a pattern may match a password.
const SETTINGS: [&str; 10] = [
    "maxmemory",
    "maxmemory-policy",
    "appendonly",
    "appendfsync",
    "save",
    "min-replicas-to-write",
    "min-replicas-max-lag",
    "replica-read-only",
    "cluster-node-timeout",
    "cluster-require-full-coverage",
];

/// The fields of `INFO`.
pub(super) async fn info(client: &ServerClient) -> Reading<Fields> {
    let section = |name: &'static str| async move {
        let told = client.ask(cmd("INFO").arg(name)).await?;
        text(&told).ok_or(NotRead::Strange)
    };
    let mut info = Fields::default();
    for section in join_all(SECTIONS.map(section)).await {
        info.add(&section?);
    }
    Ok(info)
}

/// What `CONFIG GET` tells; a server that does not know a setting leaves it out.
pub(super) async fn settings(client: &ServerClient) -> Reading<Fields> {
    let value = |name: &'static str| async move {
        client.ask_for(cmd("CONFIG").arg("GET").arg(name)).await
    };
    let answers: Vec<Reading<BTreeMap<String, String>>> = join_all(SETTINGS.map(value)).await;
    if !answers.iter().any(Result::is_ok)
        && let Some(Err(why)) = answers.first()
    {
        return Err(why.clone());
    }
    Ok(Fields(answers.into_iter().flatten().flatten().collect()))
}

/// With fewer keys than these, locks take no memory that matters.
const MANY_KEYS: u64 = 10_000;

/// How many keys are looked at to know what the others are: those that stand together in the table of a
/// server have nothing in common but that.
const SAMPLE: u32 = 1_000;

/// What share of the keys of a database with many keys belongs to locks.
pub(super) async fn lock_keys(
    client: &ServerClient,
    config: &RedisConfig,
    info: &Reading<Fields>,
) -> Option<LockKeys> {
    let database = format!("db{}", config.address.info().redis_settings().db());
    let told = info.as_ref().ok()?.get(&database)?;
    let all = told.split(',').find_map(|field| field.strip_prefix("keys=")?.parse().ok())?;
    if all < MANY_KEYS {
        return None;
    }
    let scan = cmd("SCAN").arg(0).arg("COUNT").arg(SAMPLE).take();
    let (_, sample): (u64, Vec<Vec<u8>>) = client.ask_for(&scan).await.ok()?;
    let of_locks = sample.iter().filter(|key| config.keys.lock_of_lease(key).is_some());
    let lengths: Vec<_> = of_locks.map(|key| key.len() as u64).collect();
    Some(LockKeys {
        all,
        sample: sample.len() as u64,
        of_locks: lengths.len() as u64,
        length: lengths.iter().sum(),
    })
}

/// How many replicas a master names in answer to `ROLE`: its name, its offset, and they.
pub(super) async fn role(client: &ServerClient) -> Option<usize> {
    let told = client.ask(&cmd("ROLE")).await.ok()?;
    let Value::Array(parts) = told else { return None };
    let Some(Value::Array(replicas)) = parts.get(2) else { return None };
    Some(replicas.len())
}

/// Whether acknowledgements may be waited for: here for those of no replica, which are there at
/// once.
pub(super) async fn acks(client: &ServerClient, acks: Replication) -> Reading<()> {
    let mut command = if acks.on_disk() { cmd("WAITAOF").arg(0).take() } else { cmd("WAIT") };
    client.ask(command.arg(0).arg(1)).await.map(drop)
}

/// What the boot mark of a node says, by the clock of the node.
pub(super) async fn mark(client: &ServerClient, key: String) -> Reading<Mark> {
    // As boot.lua of a quorum reads it: whatever stands there, no more than a mark has.
    let text: String = client.ask_for(&cmd("GETRANGE").arg(key).arg(0).arg(256).take()).await?;
    let counts = text.split(' ').next().and_then(|first| first.parse().ok());
    let Some(counts) = counts.map(Duration::from_millis) else { return Ok(Mark::Missing) };
    let rest = counts.saturating_sub(time(client).await?);
    Ok(if rest.is_zero() { Mark::Counts } else { Mark::Out(rest) })
}

/// What a node says about its Cluster.
pub(super) async fn cluster_node(
    client: &ServerClient,
    config: &RedisConfig,
) -> Reading<ClusterTold> {
    let told = client.ask(cmd("CLUSTER").arg("INFO")).await?;
    let mut info = Fields::default();
    info.add(&text(&told).ok_or(NotRead::Strange)?);
    let slots = client.ask(cmd("CLUSTER").arg("SLOTS")).await.ok();
    let place = Endpoint::of(config.address.info().addr());
    let told = slots.zip(place);
    let replicas = told.as_ref().and_then(|(slots, place)| healthy_replicas(slots, place));
    let shared = told.as_ref().and_then(|(slots, place)| shared(slots, place, false));
    Ok(ClusterTold { info, replicas, shared })
}

/// How many replicas of a master are well: `CLUSTER SLOTS` has them behind their master.
fn healthy_replicas(slots: &Value, master: &Endpoint) -> Option<usize> {
    let Value::Array(ranges) = slots else { return None };
    ranges.iter().find_map(|range| {
        let Value::Array(range) = range else { return None };
        let [_, _, Value::Array(first), replicas @ ..] = range.as_slice() else { return None };
        let [host, Value::Int(port), ..] = first.as_slice() else { return None };
        // A node that does not know its own host tells none.
        let is_host = text(host).is_none_or(|host| host.is_empty() || host == master.host);
        (is_host && *port == i64::from(master.port)).then_some(replicas.len())
    })
}

/// How many round trips are timed.
const TRIPS: usize = 5;

/// The server's time of day.
async fn time(client: &ServerClient) -> Reading<Duration> {
    let (seconds, micros): (u64, u64) = client.ask_for(&cmd("TIME")).await?;
    Ok(Duration::from_secs(seconds).saturating_add(Duration::from_micros(micros)))
}

/// Times a few round trips, and reads the server's clock.
pub(super) async fn timing(client: &ServerClient) -> Reading<RoundTrips> {
    let mut samples = Vec::with_capacity(TRIPS);
    for _ in 0..TRIPS {
        match sample(client).await {
            Ok(sample) => samples.push(sample),
            Err(why) if samples.is_empty() => return Err(why),
            Err(_) => break,
        }
    }
    summary(samples).ok_or(NotRead::Silent)
}

/// How long a round trip took, and how far the server's clock was from ours in the middle of it.
async fn sample(client: &ServerClient) -> Reading<(Duration, ClockOffset)> {
    let (begun_at, sent_at) = (client.clock.now(), client.clock.unix_time());
    let server = time(client).await?;
    let trip = client.clock.now().saturating_since(begun_at);
    Ok((trip, ClockOffset::between(server, sent_at + trip / 2)))
}

/// The median of the round trips, and the offset of the shortest: there the server read its clock
/// nearest to the middle.
fn summary(mut samples: Vec<(Duration, ClockOffset)>) -> Option<RoundTrips> {
    samples.sort_by_key(|(trip, _)| *trip);
    let (median, _) = *samples.get(samples.len() / 2)?;
    let (trip, offset) = *samples.first()?;
    Some(RoundTrips { median, offset, margin: trip / 2 })
}

#[cfg(test)]
mod tests {
    use super::*;

    fn node(host: Value, port: i64) -> Value {
        Value::Array(vec![host, Value::Int(port), Value::BulkString("id".into())])
    }

    #[test]
    fn replicas_stand_behind_their_master() {
        let host = |name: &str| Value::BulkString(name.into());
        let range = |nodes: Vec<Value>| {
            Value::Array([Value::Int(0), Value::Int(8)].into_iter().chain(nodes).collect())
        };
        let slots = Value::Array(vec![
            range(vec![node(host("a"), 1), node(host("r"), 7)]),
            range(vec![node(host("b"), 1)]),
            range(vec![node(Value::Nil, 2), node(host("r"), 8), node(host("r"), 9)]),
        ]);
        let at = |host: &str, port| healthy_replicas(&slots, &Endpoint { host: host.into(), port });
        assert_eq!(
            [at("a", 1), at("b", 1), at("c", 2), at("a", 3)],
            [Some(1), Some(0), Some(2), None]
        );
        assert_eq!(healthy_replicas(&Value::Nil, &Endpoint { host: "a".into(), port: 1 }), None);
    }

    #[test]
    fn the_shortest_round_trip_tells_the_offset() {
        let millis = Duration::from_millis;
        let sample = |trip, ahead| (millis(trip), ClockOffset::Ahead(millis(ahead)));
        let told = summary(vec![sample(40, 13), sample(4, 10), sample(10, 9)]).unwrap();
        assert_eq!(told.median, millis(10));
        assert_eq!((told.offset, told.margin), (ClockOffset::Ahead(millis(10)), millis(2)));
        assert_eq!(summary(Vec::new()), None);
    }
}
