//! Sends commands and calls of scripts on a connection.

use std::time::Duration;

use leasehold_core::Replication;
use redis::{Cmd, RedisError, Value, aio::MultiplexedConnection};

use super::{acknowledge::Answered, args::millis, call::ScriptCall};

/// Sends a command in one pipeline with what it needs: `ASKING` before it where its slot is on the way
/// to the node, and a wait for acknowledgements behind it, which leaves the answer time to arrive
/// within `limit`. An error of the command is that of the whole.
pub(super) async fn send(
    connection: &mut MultiplexedConnection,
    command: Cmd,
    is_asking: bool,
    acks: Replication,
    limit: Duration,
) -> Result<Answered, RedisError> {
    if !is_asking && !acks.are_asked() {
        let answer = connection.send_packed_command(&command).await.and_then(refuse_error)?;
        return Ok(Answered { answer, counted: None });
    }
    let mut all = redis::pipe();
    if is_asking {
        all.cmd("ASKING");
    }
    all.add_command(command);
    if acks.are_asked() {
        all.add_command(wait(acks, limit));
    }
    let mut answers = connection.send_packed_commands(&all, 0, all.len()).await?;
    let mut last = || answers.pop().unwrap_or(Value::Nil);
    let counted = acks.are_asked().then(&mut last);
    Ok(Answered { answer: refuse_error(last())?, counted })
}

fn wait(acks: Replication, limit: Duration) -> Cmd {
    let mut wait;
    if acks.on_disk() {
        wait = redis::cmd("WAITAOF");
        wait.arg(1);
    } else {
        wait = redis::cmd("WAIT");
    }
    wait.arg(acks.replicas()).arg(millis(acks.timeout().min(limit / 4 * 3)).max(1));
    wait
}

/// Calls a script by digest, and with the whole text if the server does not know it. The caller keeps
/// the deadline.
///
/// # Errors
///
/// [`RedisError`] when the server refuses, or the connection ends.
///
/// # Cancel safety
///
/// Dropping the future leaves the answer unread; the script may have run.
pub async fn evaluate(
    connection: &mut MultiplexedConnection,
    call: ScriptCall<'_>,
    is_asking: bool,
    limit: Duration,
) -> Result<Answered, RedisError> {
    if !call.has_body {
        match send(connection, call.by_digest(), is_asking, call.acks, limit).await {
            Err(error) if error.code() == Some("NOSCRIPT") => {}
            answer => return answer,
        }
    }
    Box::pin(send(connection, call.by_body(), is_asking, call.acks, limit)).await
}

/// Makes an `Err` of an answer that is an error.
///
/// An error inside of an answer is a part of it: the script has run to its end.
pub(super) fn refuse_error(answer: Value) -> Result<Value, RedisError> {
    match answer {
        Value::ServerError(error) => Err(error.into()),
        answer => Ok(answer),
    }
}
