use std::{
    io::{self, IsTerminal},
    thread,
};

use leasehold::{ForceReleased, ListedLock, LockRuntime, NamePattern};
use ratatui::crossterm::event::{self, Event, KeyEventKind};
use tokio::{
    select,
    signal::unix::{SignalKind, signal},
    sync::{mpsc, watch},
};

use super::{
    looks::keep_looking,
    model::{Action, Model},
    view::draw,
};
use crate::{
    args::{ServerArgs, TopArgs},
    ending::CliError,
    server,
};

/// Shows the locks until it is told to quit.
pub(crate) async fn top(args: &ServerArgs, TopArgs { pattern }: &TopArgs) -> Result<u8, CliError> {
    if !io::stdout().is_terminal() || !io::stdin().is_terminal() {
        return Err(CliError::usage(
            "top needs a terminal: for machines, write leasehold ls --json",
        ));
    }
    let pattern = NamePattern::new(pattern).map_err(CliError::usage)?;
    let (builder, address) = server::settings(args, "leasehold top")?;
    let shown = address.to_string();
    let locks = server::connect(builder, address).await?;
    watch(&locks, pattern, &shown).await
}

async fn watch(locks: &LockRuntime, pattern: NamePattern, address: &str) -> Result<u8, CliError> {
    let (paused, is_paused) = watch::channel(false);
    let (sender, mut seen) = mpsc::channel(1);
    tokio::spawn(keep_looking(locks.clone(), pattern, is_paused, sender));
    let mut terminated = signal(SignalKind::terminate()).map_err(broken)?;
    let mut interrupted = signal(SignalKind::interrupt()).map_err(broken)?;
    let _restored = RestoredTerminal;
    let mut screen = ratatui::try_init().map_err(broken)?;
    let mut inputs = read_terminal();
    let mut model = Model::default();
    loop {
        screen.draw(|frame| draw(frame, &model, address)).map_err(broken)?;
        let action = select! {
            biased;
            _ = terminated.recv() => Action::Quit,
            _ = interrupted.recv() => Action::Quit,
            input = inputs.recv() => match input {
                Some(Event::Key(key)) if key.kind != KeyEventKind::Release => model.on_key(key),
                Some(_) => Action::Nothing,
                // The terminal is gone.
                None => Action::Quit,
            },
            Some(look) = seen.recv() => {
                model.on_look(look);
                Action::Nothing
            }
        };
        match action {
            Action::Nothing => {}
            Action::Quit => return Ok(0),
            Action::Pause(is_paused) => drop(paused.send(is_paused)),
            Action::ForceRelease(lock) => model.message = released(locks, *lock).await,
        }
    }
}

/// Gives the terminal back when it is dropped, as it was before.
struct RestoredTerminal;

impl Drop for RestoredTerminal {
    fn drop(&mut self) {
        let _ = ratatui::try_restore();
    }
}

/// Reads the terminal on a thread of its own, which ends with the process.
fn read_terminal() -> mpsc::UnboundedReceiver<Event> {
    let (sender, receiver) = mpsc::unbounded_channel();
    thread::spawn(move || {
        while let Ok(event) = event::read() {
            if sender.send(event).is_err() {
                return;
            }
        }
    });
    receiver
}

/// Ends a lease. Returns the result, for people.
async fn released(locks: &LockRuntime, lock: ListedLock) -> String {
    let ListedLock { name, lease, .. } = lock;
    match locks.force_release_lease(&name, lease).await {
        Ok(ForceReleased::Ended { fence: Some(fence), .. }) => {
            format!("{name} was released; present this fence to the gate: {fence}")
        }
        Ok(ForceReleased::Ended { .. }) => format!("{name} was released"),
        Ok(_) => format!("that lease of {name} had ended before: nothing was changed"),
        Err(error) => error.to_string(),
    }
}

#[expect(clippy::needless_pass_by_value, reason = "maps errors")]
fn broken(error: io::Error) -> CliError {
    CliError::config(format!("the terminal does not work: {error}"))
}
