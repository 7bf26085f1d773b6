use redis::Cmd;

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

/// One call of a script: how many keys it has, and what writes keys and arguments down.
///
/// They are written straight into the command, twice only if the server does not know the script.
#[derive(Clone, Copy)]
pub(super) struct Call<'a> {
    pub(super) script: &'a Script,
    pub(super) keys: usize,
    /// Send the whole text at once, without asking whether the server knows it.
    pub(super) with_body: bool,
    pub(super) write: &'a (dyn Fn(&mut Cmd) + Send + Sync),
}

impl Call<'_> {
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
