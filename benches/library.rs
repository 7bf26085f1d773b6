//! The scripts of the library, put together as it does, for floors that run them without it.

/// The library's own list of what makes a script.
#[path = "../crates/redis/src/scripts.rs"]
#[expect(dead_code, reason = "each floor calls some of them")]
mod scripts;

/// What the list makes of the text of a script.
mod script {
    /// A script as a client without the library calls it.
    #[derive(Debug)]
    pub(super) struct Script(pub(super) redis::Script);

    impl Script {
        #[expect(clippy::needless_pass_by_value, reason = "the library takes it so")]
        pub(super) fn new(text: String) -> Self {
            Self(redis::Script::new(&text))
        }
    }
}

/// For how long the hash of a lock stays, in milliseconds; as long as the library's.
pub(crate) const RETENTION: u64 = 604_800_000;

/// The call of one command on a lock: the keys and the settings are written, its word and arguments
/// follow.
pub(crate) fn command(namespace: &str, name: &str) -> redis::ScriptInvocation<'static> {
    let mut call = scripts::COMMANDS.0.prepare_invoke();
    for what in ["lease", "queue", "waiters", "withdrawn"] {
        call.key(format!("{namespace}:{{{name}}}:{what}"));
    }
    call.arg(RETENTION).arg(format!("{namespace}:runtime:"));
    call
}

/// The first token of a grant, which the answer of that one command tells behind this word.
pub(crate) fn granted(answer: &redis::Value, wanted: &str) -> Result<String, crate::Failure> {
    use redis::Value::{Array, BulkString};
    let Array(answers) = answer else { return Err(format!("{answer:?}").into()) };
    // What a lock that nobody waits for is granted is one text: the first and the last token.
    if let [BulkString(tokens)] = &answers[..] {
        let first = std::str::from_utf8(tokens)?.split(' ').next();
        return Ok(first.unwrap_or_default().to_owned());
    }
    let [Array(parts)] = &answers[..] else { return Err(format!("{answer:?}").into()) };
    match &parts[..] {
        [BulkString(word), BulkString(first), ..] if word == wanted.as_bytes() => {
            Ok(String::from_utf8(first.clone())?)
        }
        _ => Err(format!("{answer:?}").into()),
    }
}

/// Extends leases.
pub(crate) fn renew() -> &'static redis::Script {
    &scripts::RENEW.0
}
