//! Scripts, and how calls of them are sent.

use std::{sync::Arc, time::Duration};

use leasehold_core::Replication;
use redis::{Cmd, RedisError, Value, aio::MultiplexedConnection};

use super::acknowledge::{Answered, verb};

/// What makes a script ask for the role of its server first.
const MASTER: &str = include_str!("lua/commands/master.lua");

/// A Lua script and its digest. Cloning is cheap.
#[derive(Debug, Clone)]
pub struct Script {
    pub(super) plain: Arc<Text>,
    /// The same script, which first looks whether its server is a master.
    pub(super) proving: Arc<Text>,
}

/// The text of a script and its digest.
#[derive(Debug)]
pub(super) struct Text {
    pub(super) body: String,
    pub(super) sha: String,
}

impl Script {
    /// Takes a script's text.
    pub fn new(body: impl Into<String>) -> Self {
        let body = body.into();
        // A line with flags stays the first one.
        let first = if body.starts_with("#!") {
            body.find('\n').map_or(body.len(), |at| at + 1)
        } else {
            0
        };
        let (flags, rest) = body.split_at(first);
        let proving = Text::new([flags, &on_one_line(MASTER), rest].concat());
        Self { plain: Text::new(body), proving }
    }
}

/// A part of a script without its comments and line ends, so that what follows keeps the numbers of its lines: a
/// server names them in errors.
fn on_one_line(part: &str) -> String {
    let code = part.lines().map(str::trim).filter(|line| !line.starts_with("--"));
    code.flat_map(|line| [line, " "]).collect()
}

impl Text {
    fn new(body: String) -> Arc<Self> {
        let sha = redis::Script::new(&body).get_hash().to_owned();
        Arc::new(Self { body, sha })
    }
}

/// Writes the keys and arguments of a call into a command.
type WriteArgs<'a> = &'a (dyn Fn(&mut Cmd) + Send + Sync);

/// One call of a script. Keys and arguments are written directly into the command.
#[derive(Clone, Copy)]
pub struct ScriptCall<'a> {
    script: &'a Script,
    keys: usize,
    write: WriteArgs<'a>,
    /// Whether the whole text is sent with `EVAL` from the start.
    has_body: bool,
    /// Whether the script first looks whether its server is a master.
    pub(super) proves: bool,
    /// What the call waits for behind its script. See [`Answered`].
    pub(super) acks: Replication,
}

impl<'a> ScriptCall<'a> {
    /// A call by digest.
    pub fn new(script: &'a Script, keys: usize, write: WriteArgs<'a>) -> Self {
        Self { script, keys, write, has_body: false, proves: false, acks: Replication::NONE }
    }

    /// The same call with the whole text from the start.
    #[must_use]
    pub fn with_body(self) -> Self {
        Self { has_body: true, ..self }
    }

    /// The same call, which fails unless its server is a master.
    pub(super) fn proving(self) -> Self {
        Self { proves: true, ..self }
    }

    /// The same call, which waits behind its script.
    pub(super) fn waiting_for(self, acks: Replication) -> Self {
        Self { acks, ..self }
    }

    /// Whether the server refused a call by digest because it does not know the script.
    pub(super) fn is_unknown(&self, error: &RedisError) -> bool {
        !self.has_body && error.code() == Some("NOSCRIPT")
    }

    /// The command that makes the call.
    pub(super) fn verb(&self) -> &'static str {
        if self.has_body { "EVAL" } else { "EVALSHA" }
    }

    /// The call as a command.
    pub(super) fn command(&self) -> Cmd {
        let script = if self.proves { &self.script.proving } else { &self.script.plain };
        let mut command = redis::cmd(self.verb());
        command.arg(if self.has_body { &script.body } else { &script.sha }).arg(self.keys);
        (self.write)(&mut command);
        command
    }
}

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
    let (answer, counted) = if is_asking || acks.are_asked() {
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
        (last(), counted)
    } else {
        (connection.send_packed_command(&command).await?, None)
    };
    match answer {
        Value::ServerError(error) => Err(error.into()),
        // An error inside of an answer is a part of it: the script has run to its end.
        answer => Ok(Answered { answer, counted }),
    }
}

fn wait(acks: Replication, limit: Duration) -> Cmd {
    let mut wait = redis::cmd(verb(acks));
    if acks.on_disk() {
        wait.arg(1);
    }
    wait.arg(acks.replicas()).arg(millis(acks.timeout().min(limit / 4 * 3)).max(1));
    wait
}

/// A time in whole milliseconds, as scripts take it.
pub fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
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
    match send(connection, call.command(), is_asking, call.acks, limit).await {
        Err(error) if call.is_unknown(&error) => {
            let command = call.with_body().command();
            Box::pin(send(connection, command, is_asking, call.acks, limit)).await
        }
        answer => answer,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_look_at_the_role_comes_first_but_for_flags() {
        let script = Script::new("return 1");
        let look = on_one_line(MASTER);
        assert!(look.starts_with("do local told") && !look.contains('\n'), "{look}");
        assert_eq!(script.proving.body, look.clone() + "return 1");
        let flagged = Script::new("#!lua flags=allow-oom\nreturn 1");
        let expected = format!("#!lua flags=allow-oom\n{look}return 1");
        assert_eq!(flagged.proving.body, expected);
        assert_ne!(flagged.proving.sha, flagged.plain.sha);
    }
}
