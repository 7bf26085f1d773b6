//! Texts of the library that name its functions, reworded for users of this program.

use std::sync::OnceLock;

/// For a login that is missing or refused.
pub(crate) const OTHER_LOGIN: &str =
    "for another login, write --user and --password-file, or set REDIS_USERNAME and REDIS_PASSWORD";

/// Words of the library, and what a user of this program can do in their place. Longer ones come before those
/// that are a part of them.
const WORDS: &[(&str, &str)] = &[
    // A provider is what this program reads a password with.
    ("the server refused what the credentials provider gave: ", ""),
    ("the credentials provider ", "the login "),
    (
        "the provider is asked again for the next connection; see what it says if it stays",
        OTHER_LOGIN,
    ),
    ("give the address a user and password that the server accepts", OTHER_LOGIN),
    ("it is asked again for the next connection", "it is read for each connection"),
    // Where this program tells of it, it ends.
    (
        "it is retried where that is safe; check server and network if it stays",
        "check server and network",
    ),
    ("; it is retried where the caller waits", ""),
    (
        "take the password out of the address, or set one on the server",
        "leave the password out, or set one on the server",
    ),
    // A command line has no password.
    (
        "write their login as ?sentinel_user=…&sentinel_pass=…",
        "write their login into REDIS_URL, as redis+sentinel://HOST,HOST,HOST/MASTER?sentinel_user=…&sentinel_pass=…",
    ),
    ("; timeouts and the number of connections are set on the builder", ""),
    ("its certificates on the builder", "its certificates by --tls-ca, --tls-cert and --tls-key"),
    ("with tls_root_ca()", "with --tls-ca"),
    ("give commands more time, by command_timeout() and by the ttl", "write a longer --ttl"),
    ("; a server that is slow needs a longer command_timeout()", ""),
    ("raise ttl(), command_timeout() and claim_window()", "give locks a longer ttl (--ttl)"),
    ("give min_hold() less", "give --min-hold less"),
    ("give the window less,", "give --once less,"),
    (
        "choose a shorter min_hold or window, or a longer longest_ttl in every process",
        "choose a shorter --min-hold or --once",
    ),
    ("choose a shorter ttl, or a longer longest_ttl in every process", "choose a shorter --ttl"),
    ("use wait_forever() to wait without a limit", "write --wait-forever to wait without a limit"),
    ("; a slow network needs a longer connect_timeout()", ""),
    ("with locks.all(),", "by one run with all their names,"),
    ("FenceSettings::retention_of, leasehold run --retention", "leasehold run --retention"),
];

/// Where the login of this process comes from, and what to do if it is refused.
static LOGIN: OnceLock<String> = OnceLock::new();

/// From now on a refused login is told with where it comes from.
pub(crate) fn login_is_of(source: &str) {
    // A process has one login.
    let _ = LOGIN.set(format!("the login is that of {source}"));
}

/// A text of the library for users of this program.
pub(crate) fn of_program(text: &str) -> String {
    let ours =
        WORDS.iter().fold(text.to_owned(), |text, (theirs, ours)| text.replace(theirs, ours));
    match LOGIN.get() {
        Some(login) => ours.replace(OTHER_LOGIN, login),
        None => ours,
    }
}

#[cfg(test)]
mod tests {
    use std::{fs, path::Path};

    use super::*;

    /// What is said of what this program never does: acquires that wait for replicas, fences of counters,
    /// locks that are kept idle, lock runtimes in memory, or on a tokio runtime of others.
    const NEVER: &[&str] =
        &["replication()", "own_thread()", "enable_all()", "keep_idle()", "owner()", "connect()"];

    /// Every source file of the library, without its tests.
    fn sources(folder: &Path, all: &mut Vec<String>) {
        for entry in fs::read_dir(folder).unwrap() {
            let path = entry.unwrap().path();
            if path.is_dir() && !path.ends_with("tests") {
                sources(&path, all);
            } else if path.extension().is_some_and(|extension| extension == "rs") {
                let text = fs::read_to_string(&path).unwrap();
                let code = text.split("#[cfg(test)]\nmod tests").next().unwrap().to_owned();
                let is_comment = |line: &&str| line.trim_start().starts_with("//");
                all.push(
                    code.lines().filter(|line| !is_comment(line)).collect::<Vec<_>>().join("\n"),
                );
            }
        }
    }

    fn library() -> Vec<String> {
        let crates = Path::new(env!("CARGO_MANIFEST_DIR")).parent().unwrap();
        let mut all = Vec::new();
        for name in ["core", "redis", "quorum", "doctor", "reentrant-lock", "watchdog"] {
            sources(&crates.join(name).join("src"), &mut all);
        }
        assert!(all.len() > 100, "{}", all.len());
        all
    }

    /// Texts in a line that speak of a function, such as `ttl()`.
    fn of_functions(line: &str) -> Vec<&str> {
        let texts = line.split('"').skip(1).step_by(2);
        let speaks = |text: &&str| {
            text.contains(' ')
                && text
                    .match_indices("()")
                    .any(|(at, _)| at > 0 && text.as_bytes()[at - 1].is_ascii_lowercase())
        };
        texts.filter(speaks).collect()
    }

    #[test]
    fn no_function_of_the_library_is_told_to_users_of_the_program() {
        for source in library() {
            for text in source.lines().flat_map(of_functions) {
                let ours = of_program(text);
                let is_told =
                    ours.contains("()") && !NEVER.iter().any(|never| ours.contains(never));
                // Lua of a script, and what the compiler says.
                let is_code = ours.contains("local ")
                    || ours.contains("`acquire()`")
                    || ours.contains("a lock has no");
                assert!(!is_told || is_code, "add this to WORDS: {ours}");
            }
        }
    }

    #[test]
    fn every_word_of_the_table_is_still_one_of_the_library() {
        let library = library().concat();
        for (theirs, _) in WORDS {
            assert!(library.contains(theirs), "no longer said: {theirs}");
        }
    }
}
