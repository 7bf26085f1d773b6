use std::{ffi::OsStr, io, path::Path, process::Command, thread, time::Duration};

use leasehold::{
    LockName, LockRuntime, LockRuntimeBuilder,
    error::OptionsError,
    printable,
    redis::{QuorumSettings, RedisAddress},
    store::FenceSettings,
    time::{Clock, SystemClock},
};
use nix::sys::signal::{Signal, raise};
use tokio::{select, sync::oneshot};

use super::{
    grace::Grace,
    guard_rules::{Order, Patience},
    held::Held,
    helper::Helpers,
    rules::Exit,
    signals::{Signals, unblock},
    starter,
    supervise::{Job, Outcome},
    surrounding::{Named, around, check, lease, variables},
    terminal::Terminal,
    waiting::telling,
};
use crate::{
    args::{RunArgs, ServerArgs},
    durations::LAST_WORDS,
    ending::{Cause, CliError},
    server,
};

/// Runs a command under locks. Returns the exit code.
pub(crate) fn run(server: &ServerArgs, args: RunArgs) -> Result<u8, CliError> {
    let names = names(&args)?;
    let around = around(args.owner_env)?;
    let (inherited, wanted) = split(&names, &around, args.owner_env);
    let grace = Grace::of(args.grace, args.grace_after, args.ttl).map_err(CliError::usage)?;
    let (builder, address) = server::settings(server, &service(&args))?;
    check_times(&args, &address)?;
    // A command may take half the ttl at most.
    let builder = builder.ttl(args.ttl).command_timeout((args.ttl / 2).min(Duration::from_secs(2)));
    let builder = match args.retention {
        Some(time) => {
            builder.fencing(FenceSettings::default().retention(time).map_err(CliError::usage)?)
        }
        None => builder,
    };
    let tokio = server::tokio()?;
    if wanted.is_empty() {
        tokio.block_on(async {
            check(&server::connect(builder, address).await?, &inherited).await
        })?;
        return become_command(&args, &inherited, &around);
    }
    unblock().map_err(refused)?;
    let run = Run { args, names, around, inherited, wanted, grace };
    let ended = tokio.block_on(run.on(builder, address));
    // A look-up of an address that hangs keeps nobody waiting.
    tokio.shutdown_background();
    ended
}

/// A run that needs locks.
struct Run {
    args: RunArgs,
    /// As on the command line.
    names: Vec<LockName>,
    /// The leases of the runs around this one.
    around: Vec<Named>,
    /// Those of them that are re-entered.
    inherited: Vec<Named>,
    /// The locks to acquire.
    wanted: Vec<LockName>,
    grace: Grace,
}

impl Run {
    async fn on(&self, builder: LockRuntimeBuilder, address: RedisAddress) -> Result<u8, CliError> {
        let mut signals = Signals::take().map_err(refused)?;
        // Starting a process takes as long as several answers of a server: both go on at once.
        let command = self.args.command.clone();
        let is_within_another = !self.around.is_empty();
        let grace_of_orphans = if is_within_another { Duration::ZERO } else { self.grace.time };
        let patience = Patience { grace: self.grace.time, grace_of_orphans };
        let (sender, helpers) = oneshot::channel();
        let spawn = move || drop(sender.send(Helpers::spawn(&command, patience)));
        thread::Builder::new().spawn(spawn).map_err(refused)?;
        let connecting = server::connect(builder, address);
        let connected = unless_interrupted(&mut signals, || (), connecting).await;
        let helpers = helpers.await.map_err(io::Error::other).and_then(|spawned| spawned);
        let mut helpers = helpers.map_err(refused)?;
        let locks = match connected {
            Ok(locks) => locks,
            Err(failure) => {
                helpers.dismiss();
                return Err(failure);
            }
        };
        match self.acquire(&locks, &mut helpers, &mut signals).await {
            Ok(held) => self.supervised(&locks, held, helpers, signals).await,
            Err(failure) => {
                helpers.dismiss();
                // Places in queues are given up, and the locks that were had already.
                let _ = locks.shutdown(LAST_WORDS).await;
                Err(failure)
            }
        }
    }

    /// Acquires the locks, and tells the guard until when they are held.
    async fn acquire(
        &self,
        locks: &LockRuntime,
        Helpers { starter, guard }: &mut Helpers,
        signals: &mut Signals,
    ) -> Result<Held, CliError> {
        let asking = async {
            check(locks, &self.inherited).await?;
            let asking = Held::ask(locks, &self.args, &self.wanted);
            let asked = telling(locks, &self.args, &self.wanted, asking).await;
            let held = asked.map_err(|failure| self.hint(failure))?;
            if !held.confirmed(self.args.ttl).await {
                return Err(not_begun(&held.lost().await));
            }
            Ok(held)
        };
        let reap = || guard.reap_others_than(starter.pid);
        let held = unless_interrupted(signals, reap, asking).await?;
        let begins_in = self.grace.begins_in(held.remaining());
        if begins_in.is_zero() {
            return Err(not_begun(&held.near_end()));
        }
        guard.tell(Order::Begins(SystemClock.now() + begins_in)).map_err(refused)?;
        Ok(held)
    }

    /// A nested run that waits for the run around it never gets the lock.
    fn hint(&self, failure: CliError) -> CliError {
        let waits_for_itself = self.wanted.iter().any(|name| lease(&self.around, name).is_some());
        // One with --once does not wait.
        if failure.cause != Cause::Busy || self.args.once.is_some() || !waits_for_itself {
            return failure;
        }
        let text = format!(
            "{}; the run around this one may hold it: re-enter it with --owner-env",
            failure.text
        );
        CliError { text, ..failure }
    }

    /// The locks are held, and the guard knows until when: the command begins.
    async fn supervised(
        &self,
        locks: &LockRuntime,
        held: Held,
        Helpers { starter, mut guard }: Helpers,
        signals: Signals,
    ) -> Result<u8, CliError> {
        // What the command learns of, in the order of the command line.
        let all = [held.leases(), self.inherited.clone()].concat();
        let of = |name: &LockName| all.iter().find(|(held, _)| held == name).cloned();
        let leases: Vec<_> = self.names.iter().filter_map(of).collect();
        let terminal = Terminal::of(starter.pid);
        terminal.give();
        starter.go(&variables(&leases, &self.around));
        let job = Job::new(&held, &mut guard, signals, terminal, self.grace);
        let outcome = job.supervise().await.map_err(refused)?;
        guard.end();
        match outcome {
            Outcome::Ended(exit) => {
                held.end(exit == Exit::Code(0)).await?;
                Ok(exit.code())
            }
            Outcome::Lost { failure, grace_ends } => {
                // Of several locks, the others end, too. In an outage nobody answers: the grace is not
                // exceeded for that.
                drop(held);
                let rest = grace_ends.saturating_since(SystemClock.now());
                let _ = locks.shutdown(rest.clamp(LAST_WORDS / 20, LAST_WORDS)).await;
                Err(failure)
            }
        }
    }
}

fn not_begun(why: &str) -> CliError {
    CliError::new(Cause::Lost, format!("{why}; the command was not begun"))
}

/// The locks, each of them once, as `LockRuntime::all` takes them.
fn names(args: &RunArgs) -> Result<Vec<LockName>, CliError> {
    let mut names = Vec::<LockName>::new();
    for name in &args.names {
        let name = LockName::new(name).map_err(CliError::usage)?;
        if !names.contains(&name) {
            names.push(name);
        }
    }
    let has_line_breaks = names.iter().any(|name| name.as_str().contains('\n'));
    let mistake = if has_line_breaks && names.len() > 1 {
        "a name with a line break cannot be one of several locks: use another name"
    } else if args.wait.is_some_and(|wait| wait > OptionsError::MAX_WAIT) {
        "--wait takes 365d at most: to wait without a limit, write --wait-forever"
    } else if args.once.is_some() && names.len() > 1 {
        "--once takes one name: leave --once out, or the other names"
    } else {
        return Ok(names);
    };
    Err(CliError::usage(mistake))
}

/// The leases that are re-entered, and the locks that are acquired.
fn split(names: &[LockName], around: &[Named], owner_env: bool) -> (Vec<Named>, Vec<LockName>) {
    let (mut inherited, mut wanted) = (Vec::new(), Vec::new());
    for name in names {
        match lease(around, name).filter(|_| owner_env) {
            Some(stamp) => inherited.push((name.clone(), stamp)),
            None => wanted.push(name.clone()),
        }
    }
    (inherited, wanted)
}

/// Whether a quorum keeps the locks for so long. This program uses its nodes as they are used by default.
fn check_times(args: &RunArgs, address: &RedisAddress) -> Result<(), CliError> {
    let longest = QuorumSettings::default().most_ttl();
    let times = [("--ttl", Some(args.ttl)), ("--once", args.once), ("--min-hold", args.min_hold)];
    match times.into_iter().find(|(_, time)| *time > Some(longest)) {
        Some((option, Some(time))) if address.quorum().is_some() => Err(CliError::config(format!(
            "{option} {time:?}: a quorum keeps a lock for {longest:?} at most: write a shorter time, or name another \
             kind of server"
        ))),
        _ => Ok(()),
    }
}

/// What others see as the service that holds the lock: the name of the command's file.
fn service(args: &RunArgs) -> String {
    let command = args.command.first().map(Path::new).and_then(Path::file_name);
    printable(&command.unwrap_or_else(|| OsStr::new("run")).to_string_lossy()).into()
}

/// The run around this one has the locks, supervises this process, and ends it: so the command takes
/// its place. Returns the exit code if that fails.
fn become_command(args: &RunArgs, leases: &[Named], around: &[Named]) -> Result<u8, CliError> {
    let mut words = args.command.iter();
    let Some(program) = words.next() else {
        return Err(CliError::usage("no command is given: write it behind --"));
    };
    let variables = variables(leases, around);
    Ok(starter::become_command(Command::new(program).args(words).envs(variables)))
}

/// Awaits a future, unless a signal wants this process to end. Calls the closure for each child that ends.
async fn unless_interrupted<T>(
    signals: &mut Signals,
    mut on_child: impl FnMut(),
    future: impl Future<Output = Result<T, CliError>>,
) -> Result<T, CliError> {
    let interrupted = async {
        loop {
            match signals.next().await {
                signal @ (Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT) => {
                    return CliError::new(Cause::Interrupted(Exit::Killed(signal).code()), "");
                }
                Signal::SIGTSTP => drop(raise(Signal::SIGSTOP)),
                Signal::SIGCHLD => on_child(),
                _ => {}
            }
        }
    };
    select! {
        biased;
        failure = interrupted => Err(failure),
        done = future => done,
    }
}

#[expect(clippy::needless_pass_by_value, reason = "maps errors")]
fn refused(error: io::Error) -> CliError {
    CliError::of_system(&error)
}
