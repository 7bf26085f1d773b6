use std::{env, process::Command, time::Duration};

use leasehold_testkit::{ChildProcess, RedisServer};

use super::plan::Run;
use crate::{
    Failure,
    output::{HELD, MEASURED, Output},
};

/// How long it may take to acquire all leases, and to end.
const LIMIT: Duration = Duration::from_secs(120);

/// Starts a server and the process of a run, and waits for what it measured.
pub(crate) fn measure(run: Run) -> Result<Output, Failure> {
    let server = RedisServer::builder().tcp().start();
    let mut process = ChildProcess::spawn(worker(run, &server.url(), &server.url())?);
    process.wait_for_line(HELD, LIMIT);
    let measured = process.wait_for_line(MEASURED, Duration::from_secs(run.seconds) + LIMIT);
    Ok(serde_json::from_str(&measured)?)
}

fn worker(run: Run, redis: &str, server: &str) -> Result<Command, Failure> {
    let mut command = Command::new(env::current_exe()?);
    command.args(["worker", "--subject", run.subject.worker(), "--redis", redis]);
    command.args(["--server", server, "--leases", &run.leases.to_string()]);
    command.args(["--ttl-ms", &run.ttl.as_millis().to_string()]);
    command.args(["--seconds", &run.seconds.to_string()]);
    Ok(command)
}
