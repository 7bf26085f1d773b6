use std::{fs, time::Duration};

use leasehold_testkit::{RedisServer, sentinel::Sentinel};

use crate::Failure;

/// The processor time that a server has used in user and kernel mode.
pub(crate) fn cpu(server: &RedisServer) -> Duration {
    cpu_in(&server.query::<String>(&["INFO", "cpu"]))
}

/// The same of a Sentinel.
pub(crate) fn sentinel_cpu(sentinel: &Sentinel) -> Duration {
    cpu_in(&sentinel.query::<String>(&["INFO", "cpu"]))
}

fn cpu_in(info: &str) -> Duration {
    let seconds = ["used_cpu_sys", "used_cpu_user"].map(|what| number_in(info, what));
    Duration::from_secs_f64(seconds.iter().sum())
}

/// The same of some servers together.
pub(crate) fn cpu_of(servers: &[RedisServer]) -> Duration {
    servers.iter().map(cpu).sum()
}

/// How much memory a server uses for data and what belongs to it, in bytes.
pub(crate) fn memory(server: &RedisServer) -> f64 {
    number_in(&server.query::<String>(&["INFO", "memory"]), "used_memory")
}

/// How many connections clients have to a server.
pub(crate) fn connections(server: &RedisServer) -> f64 {
    number_in(&server.query::<String>(&["INFO", "clients"]), "connected_clients")
}

/// The time that a server has spent in scripts, and how many it was called for.
pub(crate) fn scripts(server: &RedisServer) -> (Duration, f64) {
    let stats: String = server.query(&["INFO", "commandstats"]);
    let (mut micros, mut calls) = (0.0, 0.0);
    let lines = stats.lines().filter_map(|line| line.strip_prefix("cmdstat_eval"));
    for line in lines {
        let field = |what| line.split([',', ':']).find_map(|field| field.strip_prefix(what));
        let value = |what| field(what).and_then(|text| text.parse::<f64>().ok()).unwrap_or(0.0);
        micros += value("usec=");
        calls += value("calls=");
    }
    (Duration::from_secs_f64(micros / 1e6), calls)
}

/// The bytes that a server has written to all its connections, as Linux counts them.
pub(crate) fn written(server: &RedisServer) -> Result<f64, Failure> {
    let told = fs::read_to_string(format!("/proc/{}/io", server.pid()))?;
    let line = told.lines().find_map(|line| line.strip_prefix("wchar: "));
    Ok(line.ok_or("no wchar")?.parse()?)
}

fn number_in(info: &str, what: &str) -> f64 {
    let of = |line: &str| line.strip_prefix(what)?.strip_prefix(':')?.trim().parse().ok();
    info.lines().find_map(of).unwrap_or(f64::NAN)
}

/// A time in microseconds.
pub(crate) fn micros(time: Duration) -> f64 {
    time.as_secs_f64() * 1e6
}

/// A count, to reckon with.
#[expect(clippy::cast_precision_loss, reason = "a count of a few seconds is small")]
pub(crate) fn count(number: usize) -> f64 {
    number as f64
}
