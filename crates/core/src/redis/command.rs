use std::{sync::Arc, time::Duration};

use redis::Cmd;
use uuid::Uuid;

use super::{
    channel::ChannelTag,
    dialect::{Dialect, Gathered},
    lane::{millis, watermark},
    script::Script,
    scripts,
};
use crate::{
    lease::HoldUpdate,
    store::{
        Acquire, FenceSettings, Heartbeat, Hold, KeyScheme, Next, Release, WITHDRAWAL_MARK, Waiter,
        Withdraw,
    },
    types::{AcquisitionId, FenceToken, LockName, Replication, RuntimeId, RuntimeLabel, Ttl},
};

/// A command on one lock, as `lua/commands/usual.lua` takes it; owned, so that it can wait.
#[derive(Debug)]
pub(super) struct LockCommand {
    pub(super) name: LockName,
    /// Which acknowledgements a good answer needs.
    pub(super) acks: Replication,
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

/// Who asks, for how long, and whether the lock may be kept idle.
#[derive(Debug)]
struct Asker {
    ttl: Ttl,
    watermark: Option<FenceToken>,
    label: RuntimeLabel,
    keeps: bool,
}

impl LockCommand {
    /// The keys of each command.
    pub(super) const KEYS: usize = 4;

    fn new(name: LockName, id: AcquisitionId, what: What) -> Self {
        Self { name, acks: Replication::NONE, id, what }
    }

    pub(super) fn acquire(command: Acquire) -> Self {
        let Acquire { name, id, ttl, watermark, label, keeps, wait, acks } = command;
        let asker = Asker { ttl, watermark, label, keeps };
        let what = match wait {
            Some(heartbeat) => What::Acquire(asker, heartbeat),
            None => What::Try(asker),
        };
        Self { acks, ..Self::new(name, id, what) }
    }

    pub(super) fn heartbeat(waiter: &Waiter, label: &RuntimeLabel) -> Self {
        let Waiter { ref name, id, ttl, watermark, keeps, heartbeat } = *waiter;
        let asker = Asker { ttl, watermark, label: label.clone(), keeps };
        Self::new(name.clone(), id, What::Heartbeat(asker, heartbeat))
    }

    pub(super) fn hold(command: Hold) -> Self {
        let Hold { name, id, fence, update, ttl, acks } = command;
        Self { acks, ..Self::new(name, id, What::Hold { fence, update, ttl }) }
    }

    pub(super) fn release(command: Release) -> Self {
        let rest = command.keep_in_range().map_or(0, millis);
        let Release { name, id, fence, next, .. } = command;
        let what = match next {
            _ if rest > 0 => What::Keep { fence, rest },
            Some(Next { id: next, ttl, watermark, label, keeps, heartbeat }) => {
                let asker = Asker { ttl, watermark, label, keeps };
                What::Next { fence, next, asker, heartbeat }
            }
            None => What::Release { fence },
        };
        Self::new(name, id, what)
    }

    /// An attempt of nobody, for checks that shared calls are taken.
    pub(super) fn of_nobody(name: &LockName) -> Self {
        let (ttl, label) = (Ttl::default(), RuntimeLabel::new("nobody"));
        let asker = Asker { ttl, watermark: None, label, keeps: false };
        let id = AcquisitionId::new(RuntimeId::new(Uuid::nil()), 1);
        Self::new(name.clone(), id, What::Try(asker))
    }

    pub(super) fn withdraw(command: Withdraw) -> Self {
        Self::new(command.name, command.id, What::Withdraw)
    }

    /// Whether the command may be sent once more when its connection ends before the answer.
    ///
    /// A release may run twice like every command; but "gone" about its second copy means that the
    /// first one ran, and only its sender can tell that from a loss.
    pub(super) fn repeats(&self) -> bool {
        !matches!(self.what, What::Release { .. } | What::Keep { .. } | What::Next { .. })
    }

    /// The lock of a command that may share a call on a node of a Cluster: the fast path often
    /// serves it.
    fn quick_lock(&self) -> Option<&LockName> {
        let is_quick = matches!(self.what, What::Try(_) | What::Acquire(..) | What::Release { .. });
        is_quick.then_some(&self.name)
    }

    /// What the command has in common with others.
    fn common(&self) -> Option<Common<'_>> {
        let (asker, window) = match &self.what {
            What::Try(asker) => (asker, asker.ttl.get()),
            What::Acquire(asker, heartbeat)
            | What::Heartbeat(asker, heartbeat)
            | What::Next { asker, heartbeat, .. } => (asker, heartbeat.window(asker.ttl)),
            _ => return None,
        };
        let Asker { ttl, ref label, keeps, .. } = *asker;
        Some(Common { ttl, window, label, keeps })
    }

    /// Writes word and arguments; `text` is room for ids.
    fn write(&self, to: &mut Cmd, text: &mut String) {
        let mut id = |to: &mut Cmd, id: AcquisitionId| {
            text.clear();
            id.write_stored(text);
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
#[derive(PartialEq)]
struct Common<'a> {
    ttl: Ttl,
    window: Duration,
    label: &'a RuntimeLabel,
    keeps: bool,
}

impl Common<'_> {
    /// Writes it; `text` is room for the label, which has a mark before it if the lock may be kept.
    fn write(&self, to: &mut Cmd, text: &mut String) {
        to.arg("as").arg(millis(self.ttl.get())).arg(millis(self.window));
        if self.keeps {
            text.clear();
            text.push(RuntimeLabel::KEEPS);
            text.push_str(self.label.as_str());
            to.arg(&**text);
        } else {
            to.arg(self.label.as_str());
        }
    }
}

/// What every script on locks takes before its own arguments.
#[derive(Debug, Clone)]
pub(super) struct Preamble {
    pub(super) keys: KeyScheme,
    retention: String,
    channels: String,
    /// Of a node of a Cluster.
    pub(super) tag: Option<Arc<ChannelTag>>,
}

impl Preamble {
    pub(super) fn new(keys: KeyScheme, fencing: FenceSettings) -> Self {
        let (retention, channels) = (fencing.retention_millis().to_string(), keys.channels());
        Self { keys, retention, channels, tag: None }
    }

    /// The same for a node of a Cluster, with what stands behind the channels there.
    pub(super) fn at(self, tag: Option<Arc<ChannelTag>>) -> Self {
        Self { tag, ..self }
    }

    /// Writes the arguments with which every script begins.
    pub(super) fn write_settings(&self, to: &mut Cmd) {
        to.arg(&self.retention);
        match &self.tag {
            None => to.arg(&self.channels),
            Some(tag) => to.arg(self.channels.clone() + &tag.now()),
        };
    }

    pub(super) fn write_keys(&self, to: &mut Cmd, name: &LockName) {
        self.keys.each(name, &mut String::new(), |key| {
            to.arg(key);
        });
    }
}

impl Dialect for Preamble {
    type Command = LockCommand;

    fn keys(count: usize) -> usize {
        LockCommand::KEYS * count
    }

    fn script(acks: Replication) -> &'static Script {
        if acks.are_asked() { &scripts::COMMANDS_AND_TOUCH } else { &scripts::COMMANDS }
    }

    fn acks(command: &LockCommand) -> Replication {
        command.acks
    }

    fn repeats(command: &LockCommand) -> bool {
        command.repeats()
    }

    fn write<'a>(&self, to: &mut Cmd, commands: impl Iterator<Item = &'a LockCommand> + Clone) {
        let mut text = String::with_capacity(128);
        for command in commands.clone() {
            self.keys.each(&command.name, &mut text, |key| {
                to.arg(key);
            });
        }
        self.write_settings(to);
        Self::write_words(to, commands, text);
    }

    fn gathered() -> Option<Gathered<Self>> {
        let (write, lock) = (Self::write_gathered, LockCommand::quick_lock);
        Some(Gathered { script: &scripts::GATHERED, write, lock })
    }
}

impl Preamble {
    /// Writes commands for `lua/commands/gathered.lua`, which declares no key.
    pub(super) fn write_gathered(&self, to: &mut Cmd, commands: &[LockCommand]) {
        let mut text = String::with_capacity(128);
        self.write_settings(to);
        to.arg(commands.len());
        for command in commands {
            text.clear();
            self.keys.write_lease(&mut text, &command.name);
            to.arg(&*text);
        }
        Self::write_words(to, commands.iter(), text);
    }

    fn write_words<'a>(
        to: &mut Cmd,
        commands: impl Iterator<Item = &'a LockCommand>,
        mut text: String,
    ) {
        let mut written = None;
        for command in commands {
            if let Some(common) = command.common()
                && written.as_ref() != Some(&common)
            {
                common.write(to, &mut text);
                written = Some(common);
            }
            command.write(to, &mut text);
        }
    }
}

#[cfg(test)]
mod tests {
    use redis::Arg;

    use super::*;

    /// What a batch of tries sends after the keys.
    fn sent(batch: &[(u64, bool)]) -> String {
        let name = LockName::new("a").unwrap();
        let ask = |&(seconds, keeps): &(u64, bool)| {
            let ttl = Ttl::new(Duration::from_secs(seconds)).unwrap();
            let label = RuntimeLabel::new("me");
            let asker = Asker { ttl, watermark: None, label, keeps };
            let id = AcquisitionId::new(RuntimeId::new(Uuid::nil()), 1);
            LockCommand::new(name.clone(), id, What::Try(asker))
        };
        let commands: Vec<_> = batch.iter().map(ask).collect();
        let mut cmd = Cmd::new();
        let preamble = Preamble::new(KeyScheme::default(), FenceSettings::default());
        preamble.write(&mut cmd, commands.iter());
        let words = cmd.args_iter().skip(LockCommand::KEYS * batch.len() + 2);
        let words = words.map(|word| match word {
            Arg::Simple(word) => String::from_utf8_lossy(word).into_owned(),
            other => panic!("{other:?}"),
        });
        let id = format!("{}:1 0", Uuid::nil());
        words.collect::<Vec<_>>().join(" ").replace(&id, "ID")
    }

    #[test]
    fn what_is_common_is_sent_when_it_changes() {
        assert_eq!(sent(&[(1, false), (1, false)]), "as 1000 1000 me try ID try ID");
        assert_eq!(
            sent(&[(1, false), (1, true), (1, true), (2, true), (2, false)]),
            "as 1000 1000 me try ID as 1000 1000 ~me try ID try ID as 2000 2000 ~me try ID \
             as 2000 2000 me try ID"
        );
    }
}
