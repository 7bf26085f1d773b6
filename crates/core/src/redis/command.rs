use std::{fmt::Write as _, time::Duration};

use redis::{Cmd, Value};

use super::lane::{millis, watermark};
use crate::{
    lease::HoldUpdate,
    store::{
        Acquire, FenceSettings, Heartbeat, Hold, KeyScheme, Next, Release, WITHDRAWAL_MARK, Waiter,
        Withdraw,
    },
    types::{AcquisitionId, FenceToken, LockName, RuntimeLabel, Ttl},
};

/// A command on one lock, as `lua/commands/usual.lua` takes it. It is owned, so that it can wait
/// for its connection.
#[derive(Debug)]
pub(super) struct Command {
    pub(super) name: LockName,
    id: AcquisitionId,
    what: What,
}

#[derive(Debug)]
enum What {
    Try(Asker),
    Acquire(Asker, Heartbeat),
    Heartbeat(Asker, Heartbeat),
    Release { fence: FenceToken },
    Keep { fence: FenceToken, rest: u64 },
    Next { fence: FenceToken, next: AcquisitionId, asker: Asker, heartbeat: Heartbeat },
    Hold { fence: FenceToken, update: HoldUpdate, ttl: Ttl },
    Withdraw,
}

/// Who asks, and for how long.
#[derive(Debug)]
struct Asker {
    ttl: Ttl,
    watermark: Option<FenceToken>,
    label: RuntimeLabel,
}

impl Command {
    /// The keys of each command.
    pub(super) const KEYS: usize = 4;

    pub(super) fn acquire(command: Acquire<'_>) -> Self {
        let Acquire { name, id, ttl, watermark, label, wait, .. } = command;
        let asker = Asker { ttl, watermark, label: label.clone() };
        let what = match wait {
            Some(heartbeat) => What::Acquire(asker, heartbeat),
            None => What::Try(asker),
        };
        Self { name: name.clone(), id, what }
    }

    pub(super) fn heartbeat(waiter: &Waiter, label: &RuntimeLabel) -> Self {
        let Waiter { name, id, ttl, watermark, heartbeat } = waiter;
        let asker = Asker { ttl: *ttl, watermark: *watermark, label: label.clone() };
        Self { name: name.clone(), id: *id, what: What::Heartbeat(asker, *heartbeat) }
    }

    pub(super) fn hold(command: Hold<'_>) -> Self {
        let Hold { name, id, fence, update, ttl, .. } = command;
        Self { name: name.clone(), id, what: What::Hold { fence, update, ttl } }
    }

    pub(super) fn release(command: Release<'_>) -> Self {
        let Release { name, id, fence, .. } = command;
        let rest = command.keep_in_range().map_or(0, millis);
        let what = match command.next {
            _ if rest > 0 => What::Keep { fence, rest },
            Some(Next { id: next, ttl, watermark, label, heartbeat }) => {
                let asker = Asker { ttl, watermark, label: label.clone() };
                What::Next { fence, next, asker, heartbeat }
            }
            None => What::Release { fence },
        };
        Self { name: name.clone(), id, what }
    }

    pub(super) fn withdraw(command: Withdraw<'_>) -> Self {
        Self { name: command.name.clone(), id: command.id, what: What::Withdraw }
    }

    /// Whether the command may be sent once more when its connection ends before the answer.
    ///
    /// A release may run twice like every command; but "gone" about its second copy means that the
    /// first one ran, and only its sender can tell that from a loss.
    pub(super) fn repeats(&self) -> bool {
        !matches!(self.what, What::Release { .. } | What::Keep { .. } | What::Next { .. })
    }

    /// What the command has in common with others: the ttl, the claim window and the label.
    fn common(&self) -> Option<Common<'_>> {
        match &self.what {
            What::Try(asker) => Some((asker.ttl, asker.ttl.get(), &asker.label)),
            What::Acquire(asker, heartbeat)
            | What::Heartbeat(asker, heartbeat)
            | What::Next { asker, heartbeat, .. } => {
                Some((asker.ttl, heartbeat.window(asker.ttl), &asker.label))
            }
            _ => None,
        }
    }

    /// Writes word and arguments; `text` is room for ids.
    fn write(&self, to: &mut Cmd, text: &mut String) {
        let mut id = |to: &mut Cmd, id: AcquisitionId| {
            text.clear();
            id.write_text(text);
            to.arg(&**text);
        };
        to.arg(self.word());
        id(to, self.id);
        match &self.what {
            What::Try(asker) => {
                to.arg(watermark(asker.watermark));
            }
            What::Acquire(asker, heartbeat) | What::Heartbeat(asker, heartbeat) => {
                to.arg(watermark(asker.watermark)).arg(heartbeat.number);
            }
            What::Release { fence } => {
                to.arg(fence.get());
            }
            What::Keep { fence, rest } => {
                to.arg(fence.get()).arg(*rest);
            }
            What::Next { fence, next, asker, heartbeat } => {
                to.arg(fence.get());
                id(to, *next);
                to.arg(watermark(asker.watermark)).arg(heartbeat.number);
            }
            What::Hold { fence, update, ttl } => {
                to.arg(fence.get()).arg(update.count.get()).arg(update.number);
                to.arg(millis(ttl.get()));
            }
            What::Withdraw => {
                to.arg(millis(WITHDRAWAL_MARK));
            }
        }
    }

    fn word(&self) -> &'static str {
        match self.what {
            What::Try(_) => "try",
            What::Acquire(..) => "acquire",
            What::Heartbeat(..) => "heartbeat",
            What::Release { .. } => "release",
            What::Keep { .. } => "keep",
            What::Next { .. } => "next",
            What::Hold { .. } => "hold",
            What::Withdraw => "withdraw",
        }
    }
}

/// Written once for all commands that it is the same for.
type Common<'a> = (Ttl, Duration, &'a RuntimeLabel);

/// What every script on locks takes before its own arguments.
#[derive(Debug, Clone)]
pub(super) struct Preamble {
    pub(super) keys: KeyScheme,
    retention: String,
    channels: String,
}

impl Preamble {
    pub(super) fn new(keys: KeyScheme, fencing: FenceSettings) -> Self {
        let mut retention = String::new();
        let _ = write!(retention, "{}", fencing.retention_millis());
        let channels = keys.channels();
        Self { keys, retention, channels }
    }

    /// Writes the arguments with which every script begins.
    pub(super) fn write(&self, to: &mut Cmd) {
        to.arg(&self.retention).arg(&self.channels);
    }

    /// Writes the keys of a lock.
    pub(super) fn write_keys(&self, to: &mut Cmd, name: &LockName) {
        self.keys.each(name, &mut String::new(), |key| {
            to.arg(key);
        });
    }

    /// Writes keys and arguments of many commands.
    pub(super) fn write_commands<'a>(
        &self,
        to: &mut Cmd,
        commands: impl Iterator<Item = &'a Command> + Clone,
    ) {
        let mut text = String::with_capacity(128);
        for command in commands.clone() {
            self.keys.each(&command.name, &mut text, |key| {
                to.arg(key);
            });
        }
        self.write(to);
        let mut written = None;
        for command in commands {
            let common = command.common();
            if let Some((ttl, window, label)) = common
                && common != written
            {
                to.arg("as").arg(millis(ttl.get())).arg(millis(window)).arg(label.as_str());
                written = common;
            }
            command.write(to, &mut text);
        }
    }
}

/// The answers of many commands; the value itself if they are not as many.
pub(super) fn answers(value: Value, asked: usize) -> Result<Vec<Value>, Value> {
    match value {
        Value::Array(answers) if answers.len() == asked => Ok(answers),
        other => Err(other),
    }
}
