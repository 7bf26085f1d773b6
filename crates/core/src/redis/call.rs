use redis::Cmd;

use super::script::{Script, Text};
use crate::types::Replication;

/// Room for what a script takes, for each key, so that writing a command does not grow it.
const ARGS_FOR_A_KEY: usize = 4;
const BYTES_FOR_A_KEY: usize = 100;

/// Writes the keys and arguments of a call into a command.
type Write<'a> = &'a (dyn Fn(&mut Cmd) + Send + Sync);

/// One call of a script. Keys and arguments are written directly into the command.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    script: &'a Script,
    keys: usize,
    /// For how many commands, or keys, there is room.
    room: usize,
    write: Write<'a>,
    /// Whether the whole text is sent with `EVAL` from the start.
    pub(super) has_body: bool,
    /// Whether the script first looks whether its server is a master.
    pub(super) proves: bool,
    /// What the call waits for behind its script. It is then answered with both answers, see
    /// [`Answered`](super::acknowledge::Answered).
    pub(super) acks: Replication,
}

impl<'a> Call<'a> {
    /// A call by digest.
    pub(super) fn new(script: &'a Script, keys: usize, write: Write<'a>) -> Self {
        Self {
            script,
            keys,
            room: keys,
            write,
            has_body: false,
            proves: false,
            acks: Replication::NONE,
        }
    }

    /// The same call, which writes as much as one with so many keys.
    pub(super) fn with_room(self, room: usize) -> Self {
        Self { room, ..self }
    }

    /// The same call with the whole text from the start.
    pub(super) fn with_body(self) -> Self {
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
        let (args, bytes) = (self.room * ARGS_FOR_A_KEY, self.room * BYTES_FOR_A_KEY);
        let mut command = Cmd::with_capacity(8 + args, 100 + script.len() + bytes);
        command.arg(verb).arg(script).arg(self.keys);
        (self.write)(&mut command);
        command
    }
}
