use redis::Cmd;

use crate::{
    quorum::{NodeCommand, QuorumSettings, Word},
    redis::{dialect::Dialect, lane::millis, script::Script, scripts},
    store::{FenceSettings, KeyScheme, WITHDRAWAL_MARK},
    types::{Acks, AcquisitionId, RuntimeLabel},
};

/// Writes commands as the files in `lua/quorum` take them.
#[derive(Debug)]
pub(super) struct NodeDialect {
    keys: KeyScheme,
    boot: String,
    retention: u64,
    channels: String,
    tolerance: u64,
}

impl NodeDialect {
    pub(super) fn new(keys: &KeyScheme, fencing: FenceSettings, settings: &QuorumSettings) -> Self {
        let tolerance = settings.clock_tolerance().as_micros();
        Self {
            boot: keys.boot(),
            retention: fencing.retention_millis(),
            channels: keys.channels(),
            tolerance: u64::try_from(tolerance).unwrap_or(u64::MAX),
            keys: keys.clone(),
        }
    }
}

/// What commands have in common: the life of a lease in ms, and the label of its runtime.
type Common<'a> = (u64, &'a RuntimeLabel, bool);

fn common(word: &Word) -> Option<Common<'_>> {
    match word {
        Word::Ask { ttl, label, keeps, .. } | Word::Spread { ttl, label, keeps, .. } => {
            Some((millis(*ttl), label, *keeps))
        }
        _ => None,
    }
}

impl Dialect for NodeDialect {
    type Command = NodeCommand;

    fn keys(count: usize) -> usize {
        1 + count
    }

    fn script(_acks: Acks) -> &'static Script {
        &scripts::QUORUM
    }

    fn acks(_command: &NodeCommand) -> Acks {
        Acks::NONE
    }

    /// A release may run twice; but "gone" about its second copy means that the first one ran, and
    /// only its sender can tell that from a loss.
    fn repeats(command: &NodeCommand) -> bool {
        !matches!(command.word, Word::End { .. } | Word::Keep { .. } | Word::Force { .. })
    }

    fn write<'a>(&self, to: &mut Cmd, commands: impl Iterator<Item = &'a NodeCommand> + Clone) {
        let mut text = String::with_capacity(128);
        to.arg(&self.boot);
        for command in commands.clone() {
            text.clear();
            self.keys.write_lease(&mut text, &command.name);
            to.arg(&*text);
        }
        to.arg(self.retention).arg(&self.channels).arg(self.tolerance);
        let mut written = None;
        for command in commands {
            if let Some(common) = common(&command.word)
                && written != Some(common)
            {
                write_common(to, common, &mut text);
                written = Some(common);
            }
            write(to, command.id, &command.word, &mut text);
        }
    }
}

fn write_common(to: &mut Cmd, (ttl, label, keeps): Common<'_>, text: &mut String) {
    to.arg("as").arg(ttl);
    if keeps {
        text.clear();
        text.push(RuntimeLabel::KEEPS);
        text.push_str(label.as_str());
        to.arg(&**text);
    } else {
        to.arg(label.as_str());
    }
}

/// Writes word and arguments; `text` is room for ids.
fn write(to: &mut Cmd, id: AcquisitionId, word: &Word, text: &mut String) {
    text.clear();
    id.write_text(text);
    let mut begin = |word: &str| {
        to.arg(word).arg(&**text);
    };
    match word {
        Word::Ask { attempt, ballot, since: 0, .. } => {
            begin("try");
            to.arg(*attempt).arg(*ballot);
        }
        Word::Ask { attempt, ballot, since, heard, .. } => {
            begin("ask");
            to.arg(*attempt).arg(*ballot).arg(*since).arg(millis(*heard));
        }
        Word::Settle { attempt, fence } => {
            begin("settle");
            to.arg(*attempt).arg(*fence);
        }
        Word::Renew { attempt, fence, ttl } => {
            begin("renew");
            to.arg(*attempt).arg(*fence).arg(millis(*ttl));
        }
        Word::Spread { attempt, fence, before, holds, .. } => {
            begin("spread");
            let (count, number) = holds.map_or((1, 0), |holds| (holds.count.get(), holds.number));
            to.arg(*attempt).arg(*fence).arg(*before).arg(count).arg(number);
        }
        Word::Hold { attempt, update, ttl } => {
            begin("hold");
            to.arg(*attempt).arg(update.count.get()).arg(update.number).arg(ttl.as_millis());
        }
        Word::End { attempt, fence: 0, marks: false } => {
            begin("free");
            to.arg(*attempt);
        }
        Word::End { attempt, fence, marks } => {
            begin("end");
            let life = if *marks { millis(WITHDRAWAL_MARK) } else { 0 };
            to.arg(*attempt).arg(*fence).arg(life);
        }
        Word::Keep { attempt, fence, rest } => {
            begin("keep");
            to.arg(*attempt).arg(*fence).arg(millis(*rest));
        }
        Word::Withdraw => {
            begin("withdraw");
            to.arg(millis(WITHDRAWAL_MARK));
        }
        Word::Force { fence } => {
            begin("force");
            to.arg(*fence);
        }
        Word::Pass { fence } => {
            begin("pass");
            to.arg(*fence);
        }
        Word::Inspect => begin("inspect"),
    }
}
