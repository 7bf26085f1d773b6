use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use leasehold::{
    LockName, LockRuntime,
    error::OptionsError,
    time::{Clock, SystemClock},
};
use nix::sys::signal::{Signal, raise};
use tokio::{select, sync::oneshot};

use super::{
    grace::Grace,
    group::Group,
    guard_rules::{Order, Patience},
    held::{Asked, Held, duplicate},
    helper::{GuardProcess, Starter},
    reaper::reap_inherited,
    rules::Exit,
    signals::{Signals, unblock},
    starter,
    supervise::{Job, Outcome, why_unended},
    surrounding::{Named, Surrounding, check},
    terminal::Terminal,
    variables::variables,
};
use crate::{
    args::{RunArgs, ServerArgs},
    durations::{LAST_WORDS, LEAST_WORDS},
    ending::{Cause, ExitCodes, Failure},
    server,
    words::printable,
};

/// The ttl of a lock unless another is given; the help tells it, too.
const DEFAULT_TTL: Duration = Duration::from_secs(30);

/// Runs a command under locks. Returns the exit code.
pub(crate) fn run(server: &ServerArgs, args: RunArgs, codes: ExitCodes) -> Result<u8, Failure> {
    let names = names(&args)?;
    let around = Surrounding::of_environment();
    let (inherited, wanted) = split(&names, &around, args.owner_env);
    let ttl = args.ttl.unwrap_or(DEFAULT_TTL);
    let grace = Grace::of(args.grace, args.grace_after, ttl).map_err(Failure::usage)?;
    let (builder, address) = server::settings(server, &service(&args))?;
    // A command may take half the ttl at most.
    let builder = builder.ttl(ttl).command_timeout((ttl / 2).min(Duration::from_secs(2)));
    let tokio = server::tokio()?;
    if wanted.is_empty() {
        tokio.block_on(async {
            check(&server::connect(builder, address).await?, &inherited).await
        })?;
        return become_command(&args, &inherited, &around);
    }
    let grace_of_orphans = if around.is_there() { Duration::ZERO } else { grace.time };
    let patience = Patience { grace: grace.time, grace_of_orphans };
    unblock().map_err(refused)?;
    let run = Run { args, names, inherited, wanted, around, codes, ttl, grace };
    let ended: Result<u8, Failure> = tokio.block_on(async {
        let mut signals = Signals::take().map_err(refused)?;
        // Starting a process takes as long as several answers of a server: both go on at once.
        let command = run.args.command.clone();
        let (sender, helpers) = oneshot::channel();
        let spawn = move || drop(sender.send(spawn_helpers(&command, patience)));
        thread::Builder::new().spawn(spawn).map_err(refused)?;
        let connected = select! {
            biased;
            signal = interrupted(&mut signals, || ()) => Err(signal),
            locks = server::connect(builder, address) => Ok(locks),
        };
        let helpers = helpers.await.map_err(io::Error::other).and_then(|spawned| spawned);
        let (starter, guard) = helpers.map_err(refused)?;
        match connected {
            Ok(Ok(locks)) => run.under(&locks, starter, guard, signals).await,
            Ok(Err(failure)) => {
                dismiss(starter, guard);
                Err(failure)
            }
            Err(signal) => {
                dismiss(starter, guard);
                Ok(Exit::Killed(signal).code())
            }
        }
    });
    // A look-up of an address that hangs keeps nobody waiting.
    tokio.shutdown_background();
    ended
}

/// Nothing is to run.
fn dismiss(starter: Starter, guard: GuardProcess) {
    guard.dismiss();
    starter.dismiss();
}

fn spawn_helpers(command: &[OsString], patience: Patience) -> io::Result<(Starter, GuardProcess)> {
    let starter = Starter::spawn(command)?;
    let guard = GuardProcess::spawn(patience, starter.pid)?;
    Ok((starter, guard))
}

/// A run that needs locks.
struct Run {
    args: RunArgs,
    /// As on the command line.
    names: Vec<LockName>,
    /// The leases of the run around this one.
    inherited: Vec<Named>,
    /// The locks to acquire.
    wanted: Vec<LockName>,
    around: Surrounding,
    codes: ExitCodes,
    ttl: Duration,
    grace: Grace,
}

impl Run {
    async fn under(
        &self,
        locks: &LockRuntime,
        starter: Starter,
        mut guard: GuardProcess,
        mut signals: Signals,
    ) -> Result<u8, Failure> {
        let asked = select! {
            biased;
            signal = interrupted(&mut signals, || reap_inherited(starter.pid, &mut guard)) => {
                Err(signal)
            }
            asked = self.ask(locks) => Ok(asked),
        };
        let early = match asked {
            Ok(Ok(Asked::Held(held))) => {
                let begins_in = self.grace.begins_in(held.remaining());
                if begins_in.is_zero() {
                    Err(not_begun(&held.near_end()))
                } else if let Err(error) = guard.tell(Order::Begins(SystemClock.now() + begins_in))
                {
                    Err(refused(error))
                } else {
                    return self.supervised(locks, held, starter, guard, signals).await;
                }
            }
            Ok(Ok(Asked::Duplicate(first))) => Ok(duplicate(&first, self.codes)),
            Ok(Err(failure)) => Err(failure),
            Err(signal) => Ok(Exit::Killed(signal).code()),
        };
        dismiss(starter, guard);
        // Places in queues are given up, and the locks that were had already.
        let _ = locks.shutdown(LAST_WORDS).await;
        early
    }

    /// The locks are held, and the guard knows until when: the command begins.
    async fn supervised(
        &self,
        locks: &LockRuntime,
        held: Held,
        starter: Starter,
        mut guard: GuardProcess,
        mut signals: Signals,
    ) -> Result<u8, Failure> {
        let command = starter.pid;
        let terminal = Terminal::of(command);
        terminal.give();
        starter.go(&variables(&self.leases(&held), &self.around));
        let job = Job {
            group: Group(command),
            held: &held,
            guard: &mut guard,
            signals: &mut signals,
            terminal: &terminal,
            grace: self.grace,
            ttl: self.ttl,
        };
        let outcome = job.supervise().await.map_err(refused)?;
        guard.dismiss();
        self.end(locks, held, outcome).await
    }

    async fn ask(&self, locks: &LockRuntime) -> Result<Asked, Failure> {
        check(locks, &self.inherited).await?;
        let asked = Held::ask(locks, &self.args, &self.wanted).await;
        let asked = asked.map_err(|failure| self.hint(failure))?;
        if let Asked::Held(held) = &asked
            && !held.confirmed(self.ttl).await
        {
            return Err(not_begun(&held.lost().await));
        }
        Ok(asked)
    }

    /// A nested run that waits for the run around it never gets the lock.
    fn hint(&self, failure: Failure) -> Failure {
        let waits_for_itself = self.wanted.iter().any(|name| self.around.lease(name).is_some());
        if failure.cause != Cause::Busy || !waits_for_itself {
            return failure;
        }
        let text = format!(
            "{}; the run around this one may hold it: re-enter it with --owner-env",
            failure.text
        );
        Failure { text, ..failure }
    }

    /// The leases that the command learns of, in the order of the command line.
    fn leases(&self, held: &Held) -> Vec<Named> {
        let all = [held.leases(), self.inherited.clone()].concat();
        let of = |name: &LockName| all.iter().find(|(held, _)| held == name).cloned();
        self.names.iter().filter_map(of).collect()
    }

    async fn end(&self, locks: &LockRuntime, held: Held, outcome: Outcome) -> Result<u8, Failure> {
        let (loss, failure) = match outcome {
            Outcome::Ended(exit) => {
                held.end(exit == Exit::Code(0)).await?;
                return Ok(exit.code());
            }
            Outcome::Lost { loss, was_ended } => {
                // Not to be taken for a success: its guard may have ended it.
                let unknown =
                    "had ended by then: by itself, or because the guard of the run had told it to";
                let how = if was_ended { "was ended" } else { unknown };
                let text = format!("{}; the command {how}", loss.reason);
                (loss, Failure::new(Cause::Lost, text))
            }
            Outcome::Unended(loss, left) => {
                let (reason, why) = (&loss.reason, why_unended(&left));
                let remedy = if left.are_refused {
                    "end it by hand, and run leasehold itself as the user of the command"
                } else {
                    "see what it waits for, as a rule a disk or a file system of the network"
                };
                let text = format!(
                    "{reason}; the command could not be ended: {left} runs on without the lock, {why}: {remedy}"
                );
                (loss, Failure::new(Cause::Unended, text))
            }
        };
        // Of several locks, the others end, too. In an outage nobody answers: the grace is not exceeded
        // for that.
        drop(held);
        let rest = loss.grace_ends.saturating_since(SystemClock.now());
        let _ = locks.shutdown(LAST_WORDS.min(rest.max(LEAST_WORDS))).await;
        Err(failure)
    }
}

fn not_begun(why: &str) -> Failure {
    Failure::new(Cause::Lost, format!("{why}; the command was not begun"))
}

/// The locks, each of them once.
fn names(args: &RunArgs) -> Result<Vec<LockName>, Failure> {
    let mut names = Vec::<LockName>::new();
    for name in &args.names {
        let name = LockName::new(name).map_err(Failure::usage)?;
        if names.contains(&name) {
            return Err(Failure::usage(format!(
                "lock {name:?} is named twice: name each lock once"
            )));
        }
        names.push(name);
    }
    let has_line_breaks = names.iter().any(|name| name.as_str().contains('\n'));
    if has_line_breaks && names.len() > 1 {
        return Err(Failure::usage(
            "a name with a line break cannot be one of several locks: use another name",
        ));
    }
    if args.wait.is_some_and(|wait| wait > OptionsError::MAX_WAIT) {
        return Err(Failure::usage(
            "--wait takes 365d at most: to wait without a limit, write --wait-forever",
        ));
    }
    if args.once.is_some() && names.len() > 1 {
        return Err(Failure::usage("--once takes one name: leave --once out, or the other names"));
    }
    Ok(names)
}

/// The leases that are re-entered, and the locks that are acquired.
fn split(names: &[LockName], around: &Surrounding, owner_env: bool) -> (Vec<Named>, Vec<LockName>) {
    let (mut inherited, mut wanted) = (Vec::new(), Vec::new());
    for name in names {
        match around.lease(name).filter(|_| owner_env) {
            Some(stamp) => inherited.push((name.clone(), stamp)),
            None => wanted.push(name.clone()),
        }
    }
    (inherited, wanted)
}

/// What others see as the service that holds the lock: the name of the command's file.
fn service(args: &RunArgs) -> String {
    let command = args.command.first().map(Path::new).and_then(Path::file_name);
    printable(&command.unwrap_or_else(|| OsStr::new("run")).to_string_lossy())
}

/// The run around this one has the locks, supervises this process, and ends it: so the command takes
/// its place. Returns the exit code if that fails.
fn become_command(args: &RunArgs, leases: &[Named], around: &Surrounding) -> Result<u8, Failure> {
    let mut words = args.command.iter();
    let Some(program) = words.next() else {
        return Err(Failure::usage("no command is given: write it behind --"));
    };
    let variables = variables(leases, around);
    Ok(starter::become_command(Command::new(program).args(words).envs(variables)))
}

/// Returns when a signal wants this process to end. Calls the closure for each child that ends.
async fn interrupted(signals: &mut Signals, mut on_child: impl FnMut()) -> Signal {
    loop {
        match signals.next().await {
            signal @ (Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT) => {
                return signal;
            }
            Signal::SIGTSTP => drop(raise(Signal::SIGSTOP)),
            Signal::SIGCHLD => on_child(),
            _ => {}
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "maps errors")]
fn refused(error: io::Error) -> Failure {
    Failure::new(Cause::Config, format!("the system refuses what a run needs: {error}"))
}
