use std::time::Duration;

use redis::Cmd;

use crate::types::FenceToken;

const USUAL_ARGS: usize = 20;
const USUAL_BYTES: usize = 600;

/// A Lua script and its digest.
#[derive(Debug)]
pub struct Script {
    body: String,
    sha: String,
}

impl Script {
    /// Takes a script's text.
    pub fn new(body: impl Into<String>) -> Self {
        let body = body.into();
        let sha = redis::Script::new(&body).get_hash().to_owned();
        Self { body, sha }
    }
}

/// Writes the keys and arguments of a call into a command.
type Write<'a> = &'a (dyn Fn(&mut Cmd) + Send + Sync);

/// One call of a script: how many keys it has, and how to write keys and arguments.
///
/// They are written directly into the command, again only if the command is sent again.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    script: &'a Script,
    keys: usize,
    write: Write<'a>,
    /// Whether the whole text is sent at once.
    pub(super) has_body: bool,
    /// Whether the call may be sent once more when its connection ends before the answer.
    pub(super) repeats: bool,
}

impl<'a> Call<'a> {
    /// A call by digest, which may be sent once more when its connection ends before the answer.
    pub(super) fn new(script: &'a Script, keys: usize, write: Write<'a>) -> Self {
        Self { script, keys, write, has_body: false, repeats: true }
    }

    /// The same call, which is not sent again.
    ///
    /// A release may run twice like every script; but "gone" about its second copy means that the
    /// first one ran, and only its sender can tell that from a loss.
    pub(super) fn once(self) -> Self {
        Self { repeats: false, ..self }
    }

    /// The same call with the whole text at once, whether the server knows it or not.
    pub(super) fn with_body(self) -> Self {
        Self { has_body: true, ..self }
    }

    /// The call by digest.
    pub(super) fn by_digest(&self) -> Cmd {
        self.command("EVALSHA", &self.script.sha)
    }

    /// The call with the whole text, for a server that does not know the digest.
    pub(super) fn by_body(&self) -> Cmd {
        self.command("EVAL", &self.script.body)
    }

    fn command(&self, verb: &str, script: &str) -> Cmd {
        // Room for what all scripts of one lease take, so that writing does not grow it.
        let mut command = Cmd::with_capacity(USUAL_ARGS, script.len() + USUAL_BYTES);
        command.arg(verb).arg(script).arg(self.keys);
        (self.write)(&mut command);
        command
    }
}

/// Milliseconds as scripts take them.
pub(super) fn millis(duration: Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}

/// A watermark as scripts take it: 0 for none.
pub(super) fn watermark(seen: Option<FenceToken>) -> u64 {
    seen.map_or(0, FenceToken::get)
}
