use std::{sync::Arc, time::Duration};

use leasehold_core::{
    AcquisitionId, Fence, FenceSettings, LockName, Mode, Replication, RuntimeId, RuntimeLabel, Ttl,
    WITHDRAWAL_MARK,
    store::{Acquire, Hold, KeyScheme, Next, Release, Waiter, Withdraw},
};
use redis::Cmd;
use uuid::Uuid;

use super::{
    channel::ChannelTag,
    config::RedisConfig,
    dialect::Dialect,
    script::{Script, millis},
    scripts,
};

/// What every script on locks takes before its own arguments.
#[derive(Clone)]
pub(super) struct Preamble {
    pub(super) keys: KeyScheme,
    pub(super) fencing: FenceSettings,
    channels: String,
    /// Of a node of a Cluster.
    pub(super) tag: Option<Arc<ChannelTag>>,
}

impl Preamble {
    /// The preamble of scripts for one server.
    pub(super) fn new(config: &RedisConfig) -> Self {
        let keys = config.keys.clone();
        let fencing = config.fencing.clone();
        let tag = config.node.as_ref().map(|node| Arc::clone(&node.tag));
        Self { channels: keys.channels(), keys, fencing, tag }
    }

    /// Writes the arguments with which every script begins; those of a name hold for all locks of a call.
    pub(super) fn write_settings(&self, to: &mut Cmd, name: &LockName) {
        to.arg(self.fencing.retention_millis(name));
        match &self.tag {
            None => to.arg(&self.channels),
            Some(tag) => to.arg(self.channels.clone() + &tag.now()),
        };
    }
}

/// A command on one lock, as `lua/commands/usual.lua` takes it. `docs/protocol.md` has the arguments, answers and
/// rule of each.
pub(super) enum LockCommand {
    Acquire(Acquire),
    /// With the label of the runtime that waits.
    Heartbeat(Waiter, RuntimeLabel),
    Hold(Hold),
    Release(Release),
    Withdraw(Withdraw),
}

impl LockCommand {
    /// The keys of each command.
    pub(super) const KEYS: usize = 4;

    /// A try of nobody, for checks that shared calls are taken.
    pub(super) fn of_nobody(name: &LockName) -> Self {
        Self::Acquire(Acquire {
            name: name.clone(),
            id: AcquisitionId::new(RuntimeId::new(Uuid::nil()), 1),
            mode: Mode::Write,
            ttl: Ttl::default(),
            watermark: None,
            label: RuntimeLabel::new("nobody"),
            keeps: false,
            wait: None,
            acks: Replication::NONE,
        })
    }

    pub(super) fn name(&self) -> &LockName {
        match self {
            Self::Acquire(Acquire { name, .. })
            | Self::Heartbeat(Waiter { name, .. }, _)
            | Self::Hold(Hold { name, .. })
            | Self::Release(Release { name, .. })
            | Self::Withdraw(Withdraw { name, .. }) => name,
        }
    }

    /// Which acknowledgements a good answer needs.
    pub(super) fn acks(&self) -> Replication {
        match self {
            Self::Acquire(Acquire { acks, .. }) | Self::Hold(Hold { acks, .. }) => *acks,
            Self::Heartbeat(..) | Self::Release(_) | Self::Withdraw(_) => Replication::NONE,
        }
    }

    /// What the command has in common with others.
    fn common(&self) -> Option<SharedTerms<'_>> {
        let (ttl, window, label, keeps) = match self {
            Self::Acquire(Acquire { ttl, label, keeps, wait, .. }) => {
                let window = wait.map_or(ttl.get(), |heartbeat| heartbeat.window(*ttl));
                (*ttl, window, label, *keeps)
            }
            Self::Heartbeat(Waiter { ttl, keeps, heartbeat, .. }, label)
            | Self::Release(Release {
                keep: None,
                next: Some(Next { ttl, label, keeps, heartbeat, .. }),
                ..
            }) => (*ttl, heartbeat.window(*ttl), label, *keeps),
            Self::Hold(_) | Self::Release(_) | Self::Withdraw(_) => return None,
        };
        Some(SharedTerms { ttl, window, label, keeps })
    }

    /// Writes the word, the id and the arguments. How many these are also stands in Lua: `size` in `usual.lua`, in
    /// three places, and `SIZES` in `rest.lua`. Where each stands does, too, at a fixed distance from the word
    /// (`arg + 3`, `waiter_at(arg + 3)`): `usual.lua` for `asks`, every function of `hand_over.lua`, and
    /// `asker_at`, `waiter_at` and `run` in `rest.lua`.
    fn write(&self, to: &mut Cmd) {
        match self {
            Self::Acquire(Acquire { id, mode, watermark: seen, wait: None, .. }) => {
                begin(to, in_mode(*mode, "try", "read-try"), *id).arg(watermark(*seen));
            }
            Self::Acquire(Acquire { id, mode, watermark: seen, wait: Some(heartbeat), .. }) => {
                begin(to, in_mode(*mode, "acquire", "read-acquire"), *id)
                    .arg(watermark(*seen))
                    .arg(heartbeat.number);
            }
            Self::Heartbeat(Waiter { id, mode, watermark: seen, heartbeat, .. }, _) => {
                begin(to, in_mode(*mode, "heartbeat", "read-heartbeat"), *id)
                    .arg(watermark(*seen))
                    .arg(heartbeat.number);
            }
            Self::Release(release) => {
                // Every field by its name: a new one has to be sent, too. `as` has the others of `next`.
                let Release { name: _, id, fence, keep: _, next } = release;
                match (release.keep_in_range(), next) {
                    (Some(keep), _) => begin(to, "keep", *id).arg(fence.get()).arg(millis(keep)),
                    (None, Some(next)) => begin(to, in_mode(next.mode, "next", "read-next"), *id)
                        .arg(fence.get())
                        .arg(next.id.to_stored())
                        .arg(watermark(next.watermark))
                        .arg(next.heartbeat.number),
                    (None, None) => begin(to, "release", *id).arg(fence.get()),
                };
            }
            Self::Hold(Hold { id, fence, update, ttl, .. }) => {
                begin(to, "hold", *id).arg(fence.get());
                to.arg(update.count.get()).arg(update.number).arg(millis(ttl.get()));
            }
            Self::Withdraw(Withdraw { id, .. }) => {
                begin(to, "withdraw", *id).arg(millis(WITHDRAWAL_MARK));
            }
        }
    }
}

/// A watermark, or 0 for none.
fn watermark(seen: Option<Fence>) -> u64 {
    seen.map_or(0, Fence::get)
}

/// The word of a command that asks, for a writer and for a reader.
fn in_mode(mode: Mode, write: &'static str, read: &'static str) -> &'static str {
    match mode {
        Mode::Write => write,
        Mode::Read => read,
    }
}

fn begin<'a>(to: &'a mut Cmd, word: &str, id: AcquisitionId) -> &'a mut Cmd {
    to.arg(word).arg(id.to_stored())
}

/// Written once for all commands that it is the same for.
#[derive(PartialEq)]
struct SharedTerms<'a> {
    ttl: Ttl,
    window: Duration,
    label: &'a RuntimeLabel,
    keeps: bool,
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
        command.acks()
    }

    fn retention(&self, command: &LockCommand) -> u64 {
        self.fencing.retention_millis(command.name())
    }

    /// A release may run twice like every command; but "gone" about its second copy means that the
    /// first one ran, and only its sender can tell that from a loss.
    fn repeats(command: &LockCommand) -> bool {
        !matches!(command, LockCommand::Release(_))
    }

    fn write<'a>(&self, to: &mut Cmd, commands: impl Iterator<Item = &'a LockCommand> + Clone) {
        for command in commands.clone() {
            to.arg(&self.keys.all(command.name()));
        }
        if let Some(first) = commands.clone().next() {
            self.write_settings(to, first.name());
        }
        write_words(to, commands);
    }

    fn gathered() -> Option<&'static Script> {
        Some(&scripts::GATHERED)
    }

    /// The fast path often serves a try or an end.
    fn quick_lock(command: &LockCommand) -> Option<&LockName> {
        let is_quick = match command {
            LockCommand::Acquire(acquire) => acquire.mode == Mode::Write,
            LockCommand::Release(release) => release.keep.is_none() && release.next.is_none(),
            LockCommand::Heartbeat(..) | LockCommand::Hold(_) | LockCommand::Withdraw(_) => false,
        };
        is_quick.then(|| command.name())
    }

    fn write_gathered(&self, to: &mut Cmd, commands: &[LockCommand]) {
        self.write_settings(to, commands[0].name());
        to.arg(commands.len());
        for command in commands {
            to.arg(self.keys.lease(command.name()));
        }
        write_words(to, commands.iter());
    }
}

fn write_words<'a>(to: &mut Cmd, commands: impl Iterator<Item = &'a LockCommand>) {
    let mut written = None;
    for command in commands {
        if let Some(common) = command.common()
            && written.as_ref() != Some(&common)
        {
            let SharedTerms { ttl, window, label, keeps } = &common;
            to.arg("as").arg(millis(ttl.get())).arg(millis(*window));
            // The label has a mark before it if the lock may be kept.
            if *keeps {
                to.arg(format!("{}{label}", RuntimeLabel::KEEPS));
            } else {
                to.arg(label.as_str());
            }
            written = Some(common);
        }
        command.write(to);
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
            let LockCommand::Acquire(acquire) = LockCommand::of_nobody(&name) else { panic!() };
            LockCommand::Acquire(Acquire { ttl, label, keeps, ..acquire })
        };
        let commands: Vec<_> = batch.iter().map(ask).collect();
        let mut cmd = Cmd::new();
        let preamble = Preamble::new(&RedisConfig::new("redis://h").unwrap());
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
