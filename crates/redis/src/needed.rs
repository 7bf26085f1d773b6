//! What it means that a server refuses a command without which no lock works.

use leasehold_core::{StoreError, StoreErrorKind::Definite};
use redis::RedisError;

use super::{
    classify::{NO_COMMAND, OUT_OF_REACH, SEE_LOG, classify},
    not_dialed::NotDialed,
};

/// How the error of a needed command begins.
const REFUSES: &str = "the server, or a proxy before it, refuses";

/// The error of a command that each connection or the check at connect runs. An answer of which nobody knows
/// that it passes lasts: an operator has renamed the command away, or a proxy before the server does not
/// know it. Then the error names the command, and what needs it.
#[must_use]
pub fn needed(command: &str, refused: StoreError) -> StoreError {
    let is_known = ![SEE_LOG, NO_COMMAND].contains(&refused.remedy());
    // A connection that could not be made has named its own command.
    if is_known || !refused.is_answer() || refused.what().starts_with(REFUSES) {
        return refused;
    }
    let (command, words) = tried(refused.what()).unwrap_or_else(|| (command, refused.what()));
    let what = format!("{REFUSES} {command}, which {}: {words}", purpose(command));
    refused.lasting(what, NO_COMMAND)
}

/// The error of a script of the check at connect: of a refusal as [`needed`]; what is not answered names the command.
#[must_use]
pub fn not_run(command: &str, error: StoreError) -> StoreError {
    if error.remedy() == OUT_OF_REACH && !error.is_answer() {
        return error.without_answer_to(command).with_remedy(PASS_SCRIPTS);
    }
    needed(command, error)
}

/// What to do if a server that answers other commands does not answer a script.
const PASS_SCRIPTS: &str = "let a proxy before the server pass EVAL and EVALSHA on, or go around it; else check server and network";

/// The same of a command with which each connection begins.
pub(super) fn not_dialed(command: &str, error: RedisError) -> NotDialed {
    if command != "HELLO" && error.is_connection_dropped() {
        return ended_at(command);
    }
    let refused = needed(command, classify(&error));
    if refused.remedy() == NO_COMMAND {
        return NotDialed { is_foreign: true, ..refused.into() };
    }
    error.into()
}

/// The connection ended at a command behind the first one, `HELLO`.
pub(super) fn ended_at(command: &str) -> NotDialed {
    let what = format!(
        "cannot connect to Redis: HELLO was answered, and the connection ended at {command}"
    );
    let remedy = format!(
        "let a proxy before the server pass {command} on, or go around it; else see the server's log"
    );
    NotDialed { was_cut: true, ..StoreError::new(Definite, what, remedy).into() }
}

/// The command that a check within a script tried, and what the server said to it; see `preflight.lua`.
fn tried(words: &str) -> Option<(&str, &str)> {
    let (before, said) = words.split_once(" is refused: ")?;
    Some((before.rsplit(' ').next()?, said))
}

/// What needs a command.
fn purpose(command: &str) -> &'static str {
    match command {
        "HELLO" => "begins each connection",
        "SELECT" => "chooses the database of the address",
        "EVAL" | "EVALSHA" => "runs the scripts of locks",
        "TIME" => "lets leases end by the server's clock",
        "SUBSCRIBE" | "SSUBSCRIBE" | "PUBLISH" => "tells those who wait of grants",
        "WAIT" | "WAITAOF" => "waits for the acknowledgements that replication() asks for",
        "CLUSTER" => "tells who owns the slots",
        "INFO" => "tells whether a node of a quorum has restarted",
        of_queue if of_queue.starts_with(['H', 'Z']) => "keeps the queue of a lock",
        _ => "keeps leases",
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::StoreErrorKind::{self, Config, Definite, Indeterminate};
    use redis::make_extension_error;

    use super::*;

    fn told(code: &str, detail: &str) -> (StoreErrorKind, String) {
        let error = make_extension_error(code.into(), Some(detail.into()));
        let refused = needed("EVAL", classify(&error));
        (refused.kind(), refused.to_string())
    }

    #[test]
    fn a_refusal_that_nobody_knows_lasts_and_names_the_command() {
        for (code, detail, names) in [
            (
                "ERR",
                "unknown command 'EVAL', with args beginning with: ",
                "refuses EVAL, which runs",
            ),
            ("ERR", "unsupported command", "refuses EVAL, which runs"),
            ("ERR", "we would rather not", "refuses EVAL, which runs"),
            ("GETEX", "is refused: ERR Unknown Redis command", "refuses GETEX, which keeps leases"),
            ("ERR", "ZADD is refused: ERR not here", "refuses ZADD, which keeps the queue"),
            (
                "ERR",
                "TIME is refused: ERR This Redis command is not allowed from script",
                "refuses TIME",
            ),
        ] {
            let (kind, text) = told(code, detail);
            assert_eq!(kind, Config, "{text}");
            assert!(text.contains(names) && text.contains("rename-command"), "{text}");
            assert!(!text.contains("unknown; "), "{text}");
        }
    }

    #[test]
    fn a_connection_names_its_own_command_alone() {
        let error = make_extension_error("ERR".into(), Some("not here".into()));
        let told = needed("HELLO", classify(&error));
        assert_eq!(needed("EVAL", told.clone()), told);
    }

    #[test]
    fn a_refusal_that_nobody_knows_passes_where_connections_have_worked() {
        let unknown = || make_extension_error("ERR".into(), Some("we would rather not".into()));
        for (has_worked, kind) in [(false, Config), (true, Definite)] {
            let told = not_dialed("SUBSCRIBE", unknown()).for_now_if(has_worked);
            assert_eq!(told.error.kind(), kind);
        }
    }

    #[test]
    fn a_refusal_that_is_known_keeps_its_kind_and_its_remedy() {
        for (code, detail, kind, remedy) in [
            ("NOPERM", "this user has no permissions to run the 'eval' command", Config, "grant"),
            ("LOADING", "Redis is loading the dataset in memory", Definite, "loading"),
            ("GETEX", "is refused: LOADING Redis is loading", Definite, "loading"),
            ("ERR", "upstream failure", Indeterminate, "proxy"),
            // A master is demoted while a connection waits for replicas.
            (
                "UNBLOCKED",
                "force unblock from blocking operation, instance state changed (master -> replica?)",
                Indeterminate,
                "retried",
            ),
            ("ERR", "WAIT cannot be used with replica instances.", Indeterminate, "retried"),
            (
                "ERR",
                "DEL is refused: ERR Write commands not allowed after non deterministic commands",
                Config,
                "lua-replicate-commands",
            ),
        ] {
            let (is, text) = told(code, detail);
            assert_eq!(is, kind, "{text}");
            assert!(text.contains(remedy) && !text.contains("rename-command"), "{text}");
        }
    }
}
