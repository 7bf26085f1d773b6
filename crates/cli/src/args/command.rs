#![expect(clippy::doc_markdown, reason = "these texts are the help that the program shows")]

use std::{ffi::OsString, ops::RangeInclusive, path::PathBuf, time::Duration};

use clap::{Args, Parser, Subcommand, ValueEnum};
use leasehold::{Ttl, duration, store::FenceSettings};

use super::exit_code::ExitCode;

/// Runs commands under distributed locks on Redis, and shows who holds what and who waits.
///
/// The server is named by --url or REDIS_URL. Passwords are read from REDIS_PASSWORD or a file, never
/// from the command line.
#[derive(Debug, Parser)]
#[command(name = "leasehold", version, disable_help_subcommand = true)]
pub(crate) struct Program {
    // The last of the options: what follows would stand under its heading in the help.
    #[command(flatten)]
    pub(crate) server: ServerArgs,
    #[command(subcommand)]
    pub(crate) command: ProgramCommand,
}

/// Where the locks live.
#[derive(Debug, Clone, Args)]
#[command(next_help_heading = "Server")]
pub(crate) struct ServerArgs {
    /// The address of the server, without a password; REDIS_URL, which may have one, if this is
    /// left out.
    ///
    /// redis://HOST[:PORT][/DATABASE], rediss:// for TLS, redis+unix:///PATH,
    /// redis+sentinel://HOST,HOST,HOST/MASTER, redis+cluster://HOST,HOST or
    /// redis+quorum://HOST,HOST,HOST.
    #[arg(long, global = true, value_name = "URL")]
    pub(crate) url: Option<String>,
    /// The prefix of all keys; processes that share locks need the same [default: LEASEHOLD_NAMESPACE,
    /// or leasehold]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) namespace: Option<String>,
    /// The user to log in as [default: REDIS_USERNAME]
    #[arg(long, global = true, value_name = "NAME")]
    pub(crate) user: Option<String>,
    /// A file with the password, which is read for each connection [default: REDIS_PASSWORD]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) password_file: Option<PathBuf>,
    /// The certificate authority to trust for TLS, in PEM, read for each connection [default: those of
    /// the system]
    #[cfg(feature = "tls")]
    #[arg(long, global = true, value_name = "FILE")]
    pub(crate) tls_ca: Option<PathBuf>,
    /// The certificate to show to the server, in PEM, read for each connection
    #[cfg(feature = "tls")]
    #[arg(long, global = true, value_name = "FILE", requires = "tls_key")]
    pub(crate) tls_cert: Option<PathBuf>,
    /// The key of that certificate, in PEM and without a passphrase
    #[cfg(feature = "tls")]
    #[arg(long, global = true, value_name = "FILE", requires = "tls_cert")]
    pub(crate) tls_key: Option<PathBuf>,
}

#[derive(Debug, Subcommand)]
pub(crate) enum ProgramCommand {
    Run(RunArgs),
    Ls(ListArgs),
    Show(ShowArgs),
    Top(TopArgs),
    Release(ReleaseArgs),
    Doctor(DoctorArgs),
    Quorum(QuorumArgs),
    /// Asks whether locks can be used now: the exit code is 0 if the server answers and grants all rights
    ///
    /// For the health check of a container, every few seconds. 69: the server is out of reach, or refuses for
    /// now. 78: it refuses a login or a right.
    Health,
    Bench(BenchArgs),
    /// Writes a script for the completion of arguments in a shell
    Completions {
        /// The shell
        shell: clap_complete::Shell,
    },
    /// Writes the manual page, in the format of man
    Man,
}

/// Runs a command under a lock, or under several
///
/// The command gets LEASEHOLD_LOCK, LEASEHOLD_FENCE and LEASEHOLD_LEASE; with several locks, each of
/// them has a line for each lock, in the order of the command line. Signals are forwarded to it. When
/// the lease cannot be renewed, its process group gets SIGTERM so early that grace and lease end
/// together, and then SIGKILL.
///
/// The exit code is that of the command, or 128 + n if signal n ended it; 126 or 127 if it cannot be run.
/// 64: bad arguments. 69: the server is out of reach. 75: others hold the lock. 76: the lease was lost.
/// 77: it was lost, and the command could not be ended. 78: the server refuses a login or a right, or the
/// system an open file or a process. -E sets others.
#[derive(Debug, Clone, Args)]
#[expect(clippy::struct_excessive_bools, reason = "each is a switch of its own")]
pub(crate) struct RunArgs {
    /// Waits for the lock for at most this time, such as 500ms, 30s or 1h30m [default: 30s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) wait: Option<Duration>,
    /// Does not wait for the lock
    #[arg(long = "try", conflicts_with_all = ["wait", "wait_forever"])]
    pub(crate) tries: bool,
    /// Waits for the lock without a limit
    #[arg(long, conflicts_with = "wait")]
    pub(crate) wait_forever: bool,
    /// How long the lease lives without renewal, 100ms to 24h: after a crash of this machine, the lock
    /// is free after this time [default: 30s]
    #[arg(
        long,
        value_name = "TIME",
        value_parser = ttl,
        default_value = "30s",
        hide_default_value = true
    )]
    pub(crate) ttl: Duration,
    /// Keeps the lock closed until this time has passed since it was acquired, even if the command ends
    /// sooner; up to 24h
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) min_hold: Option<Duration>,
    /// Runs the command unless it runs elsewhere, or succeeded within this time; up to 24h
    #[arg(
        long,
        value_name = "WINDOW",
        value_parser = duration,
        conflicts_with_all = ["wait", "tries", "wait_forever", "min_hold", "owner_env"]
    )]
    pub(crate) once: Option<Duration>,
    /// Re-enters the locks that a run around this one holds, instead of waiting for them
    #[arg(long)]
    pub(crate) owner_env: bool,
    /// How long the server keeps the fence of a lock at least after its last use, 1h to 3650d; a lock for
    /// each job needs less memory with a short time, which has to be longer than any step of the server's
    /// clock [default: 7d]
    #[arg(long, value_name = "TIME", value_parser = retention)]
    pub(crate) retention: Option<Duration>,
    /// How long the command may take to end after SIGTERM, before the lease ends; less than 49 % of the
    /// ttl [default: a third of the ttl, up to 10s]
    #[arg(long, value_name = "TIME", value_parser = duration)]
    pub(crate) grace: Option<Duration>,
    /// The grace begins when the lease has ended, and may be of any length [default: 10s]; meanwhile
    /// another command may run under the lock
    #[arg(long)]
    pub(crate) grace_after: bool,
    /// Sets exit codes: CODE for a lock that others hold, or KIND=CODE for one of busy, lost, unended
    /// (the command could not be ended), unreachable, config, usage, and done (a --once that was done
    /// before; 0)
    #[arg(short = 'E', long, value_name = "[KIND=]CODE", value_parser = ExitCode::read)]
    pub(crate) exit_code: Vec<ExitCode>,
    /// The locks
    #[arg(required = true, value_name = "NAME")]
    pub(crate) names: Vec<String>,
    /// The command and its arguments, behind --
    #[arg(last = true, required = true, value_name = "COMMAND")]
    pub(crate) command: Vec<OsString>,
}

/// Reads a ttl, so that one out of range is told as it was written.
fn ttl(text: &str) -> Result<Duration, &'static str> {
    let range = Ttl::MIN..=Ttl::MAX;
    in_range(text, &range, "choose a time between 100ms and 24h")
}

/// The same of a retention.
fn retention(text: &str) -> Result<Duration, &'static str> {
    let range = FenceSettings::MIN_RETENTION..=FenceSettings::MAX_RETENTION;
    in_range(text, &range, "choose a time between 1h and 3650d")
}

fn in_range(
    text: &str,
    range: &RangeInclusive<Duration>,
    choose: &'static str,
) -> Result<Duration, &'static str> {
    duration(text).and_then(|time| range.contains(&time).then_some(time).ok_or(choose))
}

/// Lists the locks that somebody holds, or that are kept closed
///
/// The server is read in short steps, which delay nobody, however many locks there are.
#[derive(Debug, Clone, Args)]
pub(crate) struct ListArgs {
    /// Names to list; * stands for any text, ? for one character
    #[arg(default_value = "*")]
    pub(crate) pattern: String,
    /// Writes a JSON document for each lock, each in a line
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows a lock: who holds it, and who waits
#[derive(Debug, Clone, Args)]
pub(crate) struct ShowArgs {
    /// The lock
    pub(crate) name: String,
    /// Writes one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Shows locks and processes on the whole terminal, again and again
///
/// Keys: w, l, h, n sort by most wanted, longest wait, longest hold, name. c shows possible cycles. / writes a filter.
/// Space pauses. r ends the lease of the selected lock, after a question. q quits.
#[derive(Debug, Clone, Args)]
pub(crate) struct TopArgs {
    /// Names to show; * stands for any text, ? for one character
    #[arg(default_value = "*")]
    pub(crate) pattern: String,
}

/// Ends the lease of the holder of a lock, after a question
///
/// It writes the fence that shuts the old holder out of the storage, when it is presented to the gate.
#[derive(Debug, Clone, Args)]
pub(crate) struct ReleaseArgs {
    /// The lock
    pub(crate) name: String,
    /// Does not ask
    #[arg(long)]
    pub(crate) yes: bool,
    /// Writes one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Examines the servers for what endangers a promise
///
/// The exit code is 0 if nothing was found but notices, 1 for a warning, 2 for a danger.
#[derive(Debug, Clone, Args)]
pub(crate) struct DoctorArgs {
    /// Writes one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}

/// Lets the servers of a new quorum count at once, instead of after 70 s
///
/// You state that no client has used these servers for 70 s, or for the longest ttl of any client and twice
/// the tolerance, if that is longer. It is refused unless all servers answer, and none of them has a key of
/// the namespace: call it once, before any client connects.
#[derive(Debug, Clone, Args)]
pub(crate) struct QuorumArgs {
    /// What to do
    pub(crate) what: QuorumDeed,
    /// States it without a question
    #[arg(long)]
    pub(crate) yes: bool,
}

/// What is done to a quorum.
#[derive(Debug, Clone, Copy, ValueEnum)]
pub(crate) enum QuorumDeed {
    Init,
}

/// Measures locks on the server: pairs of acquire and release, and hand-overs
#[derive(Debug, Clone, Args)]
pub(crate) struct BenchArgs {
    /// How long it takes
    #[arg(long, value_name = "TIME", value_parser = duration, default_value = "20s")]
    pub(crate) time: Duration,
    /// Writes one JSON document
    #[arg(long)]
    pub(crate) json: bool,
}
