use leasehold_core::Replication;
use redis::Cmd;

use super::script::{Script, Text};

/// Writes the keys and arguments of a call into a command.
type WriteArgs<'a> = &'a (dyn Fn(&mut Cmd) + Send + Sync);

/// One call of a script. Keys and arguments are written directly into the command.
#[derive(Clone, Copy)]
pub struct ScriptCall<'a> {
    script: &'a Script,
    keys: usize,
    write: WriteArgs<'a>,
    /// Whether the whole text is sent with `EVAL` from the start.
    pub(super) has_body: bool,
    /// Whether the script first looks whether its server is a master.
    pub(super) proves: bool,
    /// What the call waits for behind its script. See
    /// [`Answered`](super::acknowledge::Answered).
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

    pub(super) fn by_digest(&self) -> Cmd {
        self.command("EVALSHA", &self.text().sha)
    }

    /// The call with the whole text, for a server that does not know the digest.
    pub(super) fn by_body(&self) -> Cmd {
        self.command("EVAL", &self.text().body)
    }

    fn text(&self) -> &'a Text {
        if self.proves { &self.script.proving } else { &self.script.plain }
    }

    fn command(&self, verb: &str, script: &str) -> Cmd {
        let mut command = redis::cmd(verb);
        command.arg(script).arg(self.keys);
        (self.write)(&mut command);
        command
    }
}
