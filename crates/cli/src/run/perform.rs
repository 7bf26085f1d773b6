use std::{
    ffi::{OsStr, OsString},
    io,
    path::Path,
    process::Command,
    thread,
    time::Duration,
};

use leasehold::{LockName, LockRuntime, Ttl, error::OptionsError};
use nix::sys::signal::{Signal, raise};
use tokio::{select, sync::oneshot};

use super::{
    guard_rules::{Order, Patience},
    held::{Asked, Held, duplicate},
    helper::{Guard, Starter},
    rules::Exit,
    signals::{Signals, unblock},
    starter,
    supervise::{Job, Outcome},
    surrounding::{Named, Surrounding, check},
    terminal::Terminal,
    variables::variables,
};
use crate::{
    args::{RunArgs, ServerArgs},
    ending::{Cause, ExitCodes, Failure},
    server,
    words::printable,
};

/// Runs a command under locks. Returns the exit code.
pub(crate) fn run(server: &ServerArgs, args: RunArgs, codes: ExitCodes) -> Result<u8, Failure> {
    let names = names(&args)?;
    let around = Surrounding::of_environment();
    let (inherited, wanted) = split(&names, &around, args.owner_env);
    let ttl = args.ttl.unwrap_or_else(|| Ttl::default().get());
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
    let grace_of_orphans = if around.is_there() { Duration::ZERO } else { args.grace };
    let patience = Patience { grace: args.grace, grace_of_orphans };
    unblock().map_err(refused)?;
    let run = Run { args, names, inherited, wanted, around, codes, ttl };
    tokio.block_on(async {
        let mut signals = Signals::take().map_err(refused)?;
        // Starting a process takes as long as several answers of a server: both go on at once.
        let command = run.args.command.clone();
        let (sender, helpers) = oneshot::channel();
        thread::spawn(move || sender.send(spawn_helpers(&command, patience)));
        let connected = select! {
            biased;
            signal = interrupted(&mut signals) => Err(signal),
            locks = server::connect(builder, address) => Ok(locks?),
        };
        let helpers = helpers.await.map_err(io::Error::other).and_then(|spawned| spawned);
        let (starter, guard) = helpers.map_err(refused)?;
        match connected {
            Ok(locks) => run.under(&locks, starter, guard, signals).await,
            Err(signal) => {
                guard.dismiss();
                Ok(Exit::Killed(signal).code())
            }
        }
    })
}

fn spawn_helpers(command: &[OsString], patience: Patience) -> io::Result<(Starter, Guard)> {
    let starter = Starter::spawn(command)?;
    let guard = Guard::spawn(patience, starter.pid)?;
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
}

impl Run {
    async fn under(
        &self,
        locks: &LockRuntime,
        starter: Starter,
        mut guard: Guard,
        mut signals: Signals,
    ) -> Result<u8, Failure> {
        let asked = select! {
            biased;
            signal = interrupted(&mut signals) => Err(signal),
            asked = self.ask(locks) => Ok(asked),
        };
        let held = match asked {
            Ok(Ok(Asked::Held(held))) => held,
            other => {
                guard.dismiss();
                // Places in queues are given up, and those of several locks that were had already.
                let _ = locks.shutdown(server::LAST_WORDS).await;
                return match other {
                    Ok(Ok(Asked::Duplicate(first))) => Ok(duplicate(&first, self.codes)),
                    Ok(Err(failure)) => Err(failure),
                    Err(signal) => Ok(Exit::Killed(signal).code()),
                    Ok(Ok(Asked::Held(_))) => Ok(self.codes.of(Cause::Lost)),
                };
            }
        };
        let leases = self.leases(&held);
        let command = starter.pid;
        let terminal = Terminal::of(command);
        if let Err(error) = guard.tell(Order::Left(held.remaining())) {
            held.end(false).await?;
            return Err(refused(error));
        }
        // From here on, it may run.
        terminal.give();
        if held.is_held() {
            starter.go(&variables(&leases, &self.around));
        }
        let job = Job {
            command,
            held: &held,
            guard: &mut guard,
            signals: &mut signals,
            terminal: &terminal,
            grace: self.args.grace,
            ttl: self.ttl,
        };
        let outcome = job.supervise().await.map_err(refused)?;
        guard.dismiss();
        self.end(locks, held, outcome).await
    }

    async fn ask(&self, locks: &LockRuntime) -> Result<Asked, Failure> {
        check(locks, &self.inherited).await?;
        let asked = Held::ask(locks, &self.args, &self.wanted).await;
        asked.map_err(|failure| self.hint(failure))
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
        if let Some(lost) = outcome.lost {
            // Of several locks, the others end, too.
            drop(held);
            let _ = locks.shutdown(server::LAST_WORDS).await;
            return Err(Failure::new(Cause::Lost, format!("{lost}; the command was ended")));
        }
        held.end(outcome.exit == Exit::Code(0)).await?;
        Ok(outcome.exit.code())
    }
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

/// Returns when a signal wants this process to end.
async fn interrupted(signals: &mut Signals) -> Signal {
    loop {
        match signals.next().await {
            signal @ (Signal::SIGTERM | Signal::SIGINT | Signal::SIGHUP | Signal::SIGQUIT) => {
                return signal;
            }
            Signal::SIGTSTP => drop(raise(Signal::SIGSTOP)),
            _ => {}
        }
    }
}

#[expect(clippy::needless_pass_by_value, reason = "maps errors")]
fn refused(error: io::Error) -> Failure {
    Failure::new(Cause::Config, format!("the system refuses what a run needs: {error}"))
}
