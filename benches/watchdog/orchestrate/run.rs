#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{env, process::Command, thread, time::Duration};

use leasehold_testkit::{
    ChildProcess, CommandKind, FaultProxy, RedisServer,
    proxy::{Direction, Links},
};

use super::plan::{Run, Subject};
use crate::{
    Failure,
    output::{HELD, MEASURED, Output},
};

/// How long it may take to acquire all leases, and to end.
const LIMIT: Duration = Duration::from_secs(120);

/// Which share of the calls fails at random where there are faults.
const FAILS: &str = "0.05";

/// Starts a server and the process of a run, and waits for what it measured.
pub(crate) fn measure(run: Run) -> Result<Output, Failure> {
    let server = RedisServer::builder().tcp().start();
    let proxy = (run.subject == Subject::Faulty).then(|| FaultProxy::before(&server));
    let redis = proxy.as_ref().map_or_else(|| server.url(), FaultProxy::url);
    let mut process = ChildProcess::spawn(worker(run, &redis, &server.url())?);
    process.wait_for_line(HELD, LIMIT);
    proxy.as_ref().map_or(Ok(()), |proxy| swallow(proxy, run))?;
    let measured = process.wait_for_line(MEASURED, Duration::from_secs(run.seconds) + LIMIT);
    Ok(serde_json::from_str(&measured)?)
}

/// A third of the time later the connection of the renewals is a black hole for a third of the ttl.
fn swallow(proxy: &FaultProxy, run: Run) -> Result<(), Failure> {
    thread::sleep(Duration::from_secs(run.seconds) / 3);
    let links = Links::Carrying(CommandKind::Renew);
    if proxy.black_hole_links(links, Direction::Both) == 0 {
        return Err("no connection carried renewals".into());
    }
    thread::sleep(run.ttl / 3);
    proxy.heal();
    Ok(())
}

fn worker(run: Run, redis: &str, server: &str) -> Result<Command, Failure> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["worker", "--subject", run.subject.worker(), "--redis", redis]);
    command.args(["--server", server, "--leases", &run.leases.to_string()]);
    command.args(["--ttl-ms", &run.ttl.as_millis().to_string()]);
    command.args(["--seconds", &run.seconds.to_string()]);
    if run.subject == Subject::Faulty {
        command.args(["--fails", FAILS]);
    }
    Ok(command)
}
