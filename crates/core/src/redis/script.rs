/// A Lua script and its digest.
#[derive(Debug)]
pub struct Script {
    pub(super) body: String,
    pub(super) sha: String,
}

impl Script {
    /// Takes a script's text.
    pub fn new(body: impl Into<String>) -> Self {
        let body = body.into();
        let sha = redis::Script::new(&body).get_hash().to_owned();
        Self { body, sha }
    }
}
