//! What the errors of the client library mean.

use std::fs::File;

use StoreErrorKind::{Config, Corrupt, Definite, Indeterminate};
use leasehold_core::{StoreError, StoreErrorKind, store::KeyScheme};
use redis::{ErrorKind, RedisError};
use tokio::task::JoinError;

pub use super::not_dialed::NOT_THERE;
use super::{
    not_dialed::{NotDialed, READ_SOCKET, SHUT, carried},
    tls::{self, TlsGiven},
};

/// What a failure of a command means, and what to do about it.
///
/// The words of the server decide: before Redis 7, the code of an error inside a script is wrapped
/// in `ERR Error running script`. A refusal before any write is definite, an unknown error
/// indeterminate.
pub fn classify(error: &RedisError) -> StoreError {
    let text = words_of(error);
    let (kind, remedy) = match error.kind() {
        ErrorKind::AuthenticationFailed => (Config, LOG_IN),
        ErrorKind::InvalidClientConfig => (Config, "correct the address or the TLS settings"),
        ErrorKind::RESP3NotSupported => (Config, NO_COMMAND),
        ErrorKind::Io | ErrorKind::Parse => (Indeterminate, OUT_OF_REACH),
        ErrorKind::UnexpectedReturnType => {
            (Corrupt, "use versions of Leasehold with one layout per namespace")
        }
        _ => by_words(&text),
    };
    let failed = StoreError::new(kind, text, remedy);
    if is_answer(error) { failed.as_answer() } else { failed }
}

fn is_answer(error: &RedisError) -> bool {
    use ErrorKind::{AuthenticationFailed, Extension, RESP3NotSupported, Server};
    matches!(error.kind(), Server(_) | Extension | AuthenticationFailed | RESP3NotSupported)
}

/// Whether the server refused a login, or asks for one.
pub(super) fn is_login(error: &RedisError) -> bool {
    error.kind() == ErrorKind::AuthenticationFailed
        || [LOG_IN, NO_PASSWORD].contains(&by_words(&words_of(error)).1)
}

/// Whether an error says that the server refused a login, or asks for one.
pub(super) fn is_of_login(error: &StoreError) -> bool {
    error.is_refused_login() || [LOG_IN, NO_PASSWORD].contains(&error.remedy())
}

/// The same error; who connects by TLS is not asked to write an address without.
pub(super) fn of_scheme(is_tls: bool, error: StoreError) -> StoreError {
    if !is_tls || !error.remedy().contains("write redis") {
        return error;
    }
    let remedy = error.remedy().replace("redis+", "rediss+").replace("redis://", "rediss://");
    error.with_remedy(remedy)
}

/// The same error; its remedy names the namespace.
#[must_use]
pub fn in_namespace(keys: &KeyScheme, error: StoreError) -> StoreError {
    if !error.remedy().contains("<namespace>") {
        return error;
    }
    let remedy = error.remedy().replace("<namespace>", keys.namespace().as_str());
    error.with_remedy(remedy)
}

/// What a failure means that a script caught and returned as text.
pub(super) fn classify_words(text: &str) -> StoreError {
    let (kind, remedy) = by_words(text);
    StoreError::new(kind, in_one_line(text), remedy).as_answer()
}

/// Whether the connection that brought this error must not be used again.
pub fn spoils_connection(error: &RedisError) -> bool {
    error.is_io_error()
        || error.is_unrecoverable_error()
        || error.kind() == ErrorKind::Parse
        || is_readonly(&words_of(error))
}

/// Whether a replica refused a write: the next connection may find the master.
pub(super) fn is_readonly(words: &str) -> bool {
    words.contains("READONLY")
}

/// Whether the server has no memory for a new key. It goes on with renewals, releases and looks.
pub(super) fn is_full(refused: &StoreError) -> bool {
    refused.is_answer() && refused.what().contains("OOM ")
}

/// A connection that could not be made: nothing was sent.
pub fn classify_dial(error: &RedisError) -> StoreError {
    if let Some(ours) = carried::<StoreError>(error) {
        return ours.clone();
    }
    if let Some(ours) = no_descriptors(&words_of(error)) {
        return ours;
    }
    if let Some(of_tls) = tls::told(TlsGiven::default(), false, error) {
        return of_tls.error;
    }
    if error.kind() == ErrorKind::Parse {
        return StoreError::new(Config, NO_REDIS, "correct host and port of the address");
    }
    let failed = classify(error);
    if failed.kind() == Indeterminate {
        let what = format!("cannot connect to Redis: {}", failed.what());
        let dialed = StoreError::new(Definite, what, not_connected(error, failed.what()));
        return if failed.is_answer() { dialed.as_answer() } else { dialed };
    }
    failed
}

/// The error of a process, or a machine, that has no file descriptors left, by the words of a failure: it is not
/// the server's, and passes. What looks up an address tells another failure then, so files are opened instead: as
/// many as may have been closed since, beside the look-up.
pub(super) fn no_descriptors(words: &str) -> Option<StoreError> {
    let open = |_| File::open("/dev/null");
    let opened = || match (0..4).map(open).collect::<Result<Vec<_>, _>>() {
        Ok(_) => words.to_owned(),
        Err(error) => error.to_string(),
    };
    let words = if words.contains(NO_ADDRESS) { opened() } else { words.to_owned() };
    let (_, whose, remedy) = NO_DESCRIPTORS.iter().find(|(code, ..)| words.contains(code))?;
    let what = format!("cannot connect to Redis: {whose} has no file descriptors left: {words}");
    Some(StoreError::new(Definite, what, *remedy).ours())
}

/// The error of the system, whose it is, and what to do about it.
const NO_DESCRIPTORS: [(&str, &str, &str); 2] = [
    (
        "(os error 24)",
        "this process",
        "raise its `ulimit -n`, or find what leaks files and connections; it is retried where the caller waits",
    ),
    (
        "(os error 23)",
        "this machine",
        "raise its `fs.file-max`, or find what leaks files and connections; it is retried where the caller waits",
    ),
];
const NO_ADDRESS: &str = "lookup address";

/// The error of the client library while it connected or set the connection up.
impl From<RedisError> for NotDialed {
    fn from(error: RedisError) -> Self {
        let was_cut = error.is_connection_dropped() && !error.is_connection_refusal();
        let is_foreign = error.kind() == ErrorKind::Parse
            || carried::<StoreError>(&error).is_some_and(tls::is_foreign);
        Self { was_cut, is_foreign, ..classify_dial(&error).into() }
    }
}

/// What to do about a connection that could not be made.
fn not_connected(error: &RedisError, text: &str) -> &'static str {
    const BY_WORDS: [(&str, &str); 3] = [
        ("No such file", "check that the server runs and the path of its socket is right"),
        ("Permission denied", READ_SOCKET),
        (NO_ADDRESS, NO_SUCH_HOST),
    ];
    match BY_WORDS.iter().find(|(words, _)| text.contains(words)) {
        Some((_, remedy)) => remedy,
        // The words of a server that has too many clients are lost where it closes behind them.
        None if error.is_connection_dropped() && !error.is_connection_refusal() => SHUT,
        None => NOT_THERE,
    }
}

/// The failure in one line; the parser's errors come in several.
fn words_of(error: &RedisError) -> String {
    if error.kind() == ErrorKind::AuthenticationFailed {
        // The client library keeps the server's own words to itself.
        return "the server refused the login".into();
    }
    if error.kind() == ErrorKind::RESP3NotSupported {
        return "unknown command `HELLO`".into();
    }
    if error.code() == Some("NOAUTH") {
        // Its own words are long, and about the protocol.
        return "the server asks for a user and password (NOAUTH)".into();
    }
    let words = match (error.code(), error.detail()) {
        (Some(code), Some(detail)) => format!("{code} {detail}"),
        _ => error.to_string(),
    };
    in_one_line(&words)
}

/// Redis 6.2 ends the words of some refusals with a line break.
fn in_one_line(words: &str) -> String {
    words.split_whitespace().collect::<Vec<_>>().join(" ")
}

/// What is said of what answers in no word of Redis.
pub(super) const NO_REDIS: &str =
    "what answers there does not speak Redis' protocol: it may not be a Redis server";
pub(super) const NO_SUCH_HOST: &str = "correct the host of the address, or check the name server";
const LOG_IN: &str = "give the address a user and password that the server accepts";
const LET_IN: &str =
    "set a password, or correct `bind` and `protected-mode` in the server's configuration";
const GRANT_RIGHTS: &str =
    "grant the Redis user what docs/operations.md lists; ACL LOG says what it was refused";
const GRANT_KEYS: &str = "grant the Redis user the keys `~<namespace>:*`, as docs/operations.md lists them; ACL LOG says \
     what it was refused";
const GRANT_CHANNELS: &str = "grant the Redis user the channels `&<namespace>:runtime:*`, as docs/operations.md lists \
     them; ACL LOG says what it was refused";
pub(super) const OUT_OF_REACH: &str =
    "it is retried where that is safe; check server and network if it stays";
const NO_PASSWORD: &str = "take the password out of the address, or set one on the server";
const WAIT: &str = "the server refuses writes for now; it is retried where the caller waits";
const NOT_A_LOCK: &str = "another program uses the key, or somebody changed it; delete the key, or choose another \
     namespace";
const FOREIGN_KEY: &str = "another program uses the key, of a lock one of `<namespace>:{<lock>}:lease`, `:queue`, `:waiters` and \
     `:withdrawn`; choose another namespace or name, or delete the key";
const CLUSTER: &str = "the server is a node of a Redis Cluster; write redis+cluster://host,host,host, with some of its nodes";
const CROSS_SLOT: &str = "give all keys of a script one hash tag, as in orders:{42}:log";
pub(super) const SEE_LOG: &str = "see the server's log";
/// What to do about a command that is missing.
pub(super) const NO_COMMAND: &str =
    "undo its `rename-command`, go around the proxy, or use Redis 6.2 or newer";
const DATABASE: &str = "correct the database number of the address";

fn by_words(text: &str) -> (StoreErrorKind, &'static str) {
    /// Words of a refusal, what it means, what to do.
    const REFUSALS: &[(&[&str], StoreErrorKind, &str)] = &[
        (&["not that of a lock"], Corrupt, NOT_A_LOCK),
        (&["WRONGTYPE"], Corrupt, FOREIGN_KEY),
        // The last ones from Redis 7.2 on, and in Valkey.
        (
            &[
                "access one of the keys",
                "can't access at least one of the keys",
                "No permissions to access a key",
            ],
            Config,
            GRANT_KEYS,
        ),
        (
            &[
                "access one of the channels",
                "can't publish to the channel",
                "No permissions to access a channel",
            ],
            Config,
            GRANT_CHANNELS,
        ),
        (&["NOPERM", "has no permissions", "can't run this command"], Config, GRANT_RIGHTS),
        (&["ACL failure in script"], Config, GRANT_RIGHTS),
        (&["NOAUTH"], Config, LOG_IN),
        (&["protected mode"], Config, LET_IN),
        (&["NOPROTO"], Config, "use a server or proxy that speaks RESP3, as Redis 6.2 does"),
        (&["WRONGPASS"], Config, LOG_IN),
        (&["AUTH <password> called", "no password is set"], Config, NO_PASSWORD),
        (&["appendonly is disabled"], Config, "set appendonly yes, or ask for Replication::wait"),
        (
            &["unknown command 'WAITAOF'", "unknown command `WAITAOF`"],
            Config,
            "use Redis 7.2 or newer, or ask for Replication::wait",
        ),
        (&["unknown command"], Config, NO_COMMAND),
        (
            &["after non deterministic commands"],
            Config,
            "set `lua-replicate-commands yes`, the default, or use Redis 7.0 or newer",
        ),
        (&["CROSSSLOT"], Config, CROSS_SLOT),
        (&["invalid DB index", "DB index is out of range"], Config, DATABASE),
        (&["is not allowed in cluster mode"], Config, CLUSTER),
        (&["MOVED"], Config, CLUSTER),
        (&["LOADING"], Definite, "the server is loading its data; wait until it has"),
        (&["BUSY"], Definite, "a script blocks the server; end it with SCRIPT KILL"),
        (&["READONLY"], Definite, "the server is a replica; write the master's address"),
        (&["OOM"], Definite, "the server is out of memory; raise maxmemory or free some"),
        (&["MISCONF"], Definite, "the server cannot persist; see its log"),
        (
            &["NOREPLICAS"],
            Definite,
            "start the replicas that are missing, or lower min-replicas-to-write",
        ),
        (
            &["CLUSTERDOWN"],
            Definite,
            "a slot of the Cluster has no owner, or its masters do not reach each other; see CLUSTER NODES and CLUSTER INFO",
        ),
        (&["MASTERDOWN", "TRYAGAIN"], Definite, WAIT),
        // A master is demoted while a connection waits for replicas.
        (&["UNBLOCKED", "cannot be used with replica instances"], Indeterminate, WAIT),
        (&["server's clock shows"], Definite, "set the clock of the server's machine"),
        (&["max number of clients"], Definite, "raise maxclients, or open fewer connections"),
        (
            &["upstream failure", "no upstream host", "upstream protocol error"],
            Indeterminate,
            "the proxy does not reach its server; check that it runs",
        ),
    ];
    let of = |words: &[&str]| words.iter().any(|words| text.contains(words));
    let known = REFUSALS.iter().find(|(words, ..)| of(words));
    match known {
        Some((_, kind, remedy)) => (*kind, remedy),
        None if is_no_command(text) => (Config, NO_COMMAND),
        None => (Indeterminate, SEE_LOG),
    }
}

/// Whether these are the words of a server or a proxy that does not have a command, or not in scripts.
fn is_no_command(text: &str) -> bool {
    let text = text.to_lowercase();
    let words = ["unknown redis command", "unsupported command", "command not supported"];
    let more = ["command is not supported", "command is not available", "not allowed from script"];
    words.iter().chain(&more).any(|words| text.contains(words))
}

/// The error of a command that was sent, may have run, and was not answered by the deadline.
pub fn unanswered() -> StoreError {
    StoreError::new(Indeterminate, "the server did not answer in time", OUT_OF_REACH)
}

/// The error of a call that got no connection by its deadline.
pub(super) fn not_in_time<T>() -> Result<T, StoreError> {
    Err(NotDialed::in_time().error)
}

/// The error of a task that should have made a connection: its tokio runtime ended, or has no IO,
/// which tokio reports by a panic. That of a credentials provider is caught earlier.
pub(super) fn no_runtime(died: &JoinError) -> StoreError {
    let (what, remedy) = if died.is_panic() {
        (
            "the tokio runtime that the lock runtime was connected on cannot make connections",
            "build it with enable_all(), or use own_thread()",
        )
    } else {
        RUNTIME_STOPPED
    };
    StoreError::new(Config, what, remedy)
}

/// The tokio runtime of a store has ended, and what to do about it.
pub(super) const RUNTIME_STOPPED: (&str, &str) = (
    "the tokio runtime that the lock runtime was connected on has stopped",
    "connect on a tokio runtime that lives as long as the locks, or use own_thread()",
);

#[cfg(test)]
mod tests {
    use std::io;

    use redis::make_extension_error;

    use super::*;

    #[test]
    fn every_refusal_has_its_kind() {
        for (code, detail, kind) in [
            ("WRONGTYPE", "Operation against a key holding the wrong kind of value", Corrupt),
            ("ERR", "Error running script (call to f_1): @user_script:1: WRONGTYPE Op", Corrupt),
            ("NOPERM", "this user has no permissions to run the 'evalsha' command", Config),
            ("ERR", "The user executing the script can't publish to the channel", Config),
            ("ERR", "The user executing the script can't run this command", Config),
            ("ERR", "ACL failure in script: No permissions to access a channel", Config),
            ("ERR", "ACL failure in script: No permissions to access a key", Config),
            ("ERR", "ACL failure in script: User app has no permissions to run the 'x'", Config),
            ("NOAUTH", "Authentication required.", Config),
            ("DENIED", "Redis is running in protected mode because protected mode is", Config),
            ("DENIED", "Running in protected mode because protected mode is enabled", Config),
            ("BUSY", "Redis is busy running a script.", Definite),
            ("OOM", "command not allowed when used memory > 'maxmemory'.", Definite),
            ("NOREPLICAS", "Not enough good replicas to write.", Definite),
            ("MISCONF", "Redis is configured to save RDB snapshots", Definite),
            ("ERR", "max number of clients reached", Definite),
            ("UNBLOCKED", "force unblock from blocking operation", Indeterminate),
            ("ERR", "something that nobody foresaw", Indeterminate),
        ] {
            let error = make_extension_error(code.into(), Some(detail.into()));
            assert_eq!(classify(&error).kind(), kind, "{code} {detail}");
            assert!(classify(&error).is_answer() && classify_dial(&error).is_answer(), "{detail}");
        }
    }

    #[test]
    fn a_process_without_file_descriptors_is_none_of_the_server() {
        for (code, whose, remedy) in
            [(24, "this process", "ulimit -n"), (23, "this machine", "file-max")]
        {
            let error = RedisError::from(io::Error::from_raw_os_error(code));
            let told = classify_dial(&error);
            assert!(told.is_ours() && told.kind() == Definite && !told.is_sign_of_life(), "{told}");
            assert!(told.what().contains(whose) && told.remedy().contains(remedy), "{told}");
        }
        // As when the certificates of the system are read.
        let certs = "Fetch certs Error: Too many open files (os error 24)";
        let error = RedisError::from((ErrorKind::InvalidClientConfig, "Fetch", certs.into()));
        assert_eq!(classify_dial(&error).kind(), Definite);
        // One that can open files looks up in vain.
        let name = io::Error::other("failed to lookup address information: no such name");
        assert!(!classify_dial(&RedisError::from(name)).is_ours());
    }

    #[test]
    fn what_speaks_another_protocol_is_wrong_unless_redis_was_there_before() {
        let error = RedisError::from((ErrorKind::Parse, "Parse error at 1"));
        assert_eq!(NotDialed::from(error.clone()).error.kind(), Config);
        let for_now = NotDialed::from(error).for_now_if(true).error;
        assert_eq!(for_now.kind(), Definite);
        assert!(!for_now.is_sign_of_life(), "it is an outage");
        let refused = make_extension_error("NOPERM".into(), None);
        assert_eq!(NotDialed::from(refused).for_now_if(true).error.kind(), Config);
    }

    #[test]
    fn a_demoted_master_spoils_its_connection_whatever_wraps_its_words() {
        let readonly = "@user_script:1: -READONLY You can't write against a read only replica.";
        for (code, detail) in [("READONLY", "You can't write"), ("ERR", readonly)] {
            let error = make_extension_error(code.into(), Some(detail.into()));
            assert!(spoils_connection(&error), "{code} {detail}");
        }
        let other = make_extension_error("ERR".into(), Some("something else".into()));
        assert!(!spoils_connection(&other));
    }

    #[test]
    fn a_lost_connection_is_indeterminate_but_a_failed_dial_is_not() {
        let error = RedisError::from(io::Error::from(io::ErrorKind::ConnectionReset));
        assert_eq!(classify(&error).kind(), Indeterminate);
        assert!(spoils_connection(&error));
        assert_eq!(classify_dial(&error).kind(), Definite);
        assert!(classify_dial(&error).remedy().contains("maxclients"));
        let refused = RedisError::from(io::Error::from(io::ErrorKind::ConnectionRefused));
        assert_eq!(classify_dial(&refused).remedy(), NOT_THERE);
        assert!([error, refused].iter().all(|error| !classify(error).is_answer()));
    }
}
