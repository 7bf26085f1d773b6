use std::{fmt::Write, time::Duration};

use leasehold_core::{
    AcquisitionId, FenceSettings, QuorumSettings, Replication, RuntimeLabel, WITHDRAWAL_MARK,
    store::KeyScheme,
};
use leasehold_redis::{Dialect, Script, millis};
use redis::{Cmd, Value};

use super::scripts;
use crate::{NodeCommand, Word};

/// Writes commands as the files in `lua` take them.
#[derive(Debug)]
pub(super) struct NodeDialect {
    keys: KeyScheme,
    boot: String,
    /// What all calls have in common.
    settings: String,
}

impl NodeDialect {
    pub(super) fn new(keys: &KeyScheme, fencing: FenceSettings, settings: &QuorumSettings) -> Self {
        let (retention, channels) = (fencing.retention_millis(), keys.channels());
        let tolerance = settings.clock_tolerance().as_micros();
        let settings = format!("{retention:013} {tolerance:010} {channels}");
        Self { boot: keys.boot(), settings, keys: keys.clone() }
    }
}

impl Dialect for NodeDialect {
    type Command = NodeCommand;

    /// Who asks several nodes goes on when the last of them has answered, so commands come in small groups.
    const ROUNDS: u32 = 3;

    /// Half of the callers would wait for other nodes.
    const SPLITS: bool = false;

    fn keys(count: usize) -> usize {
        1 + count
    }

    fn script(_acks: Replication) -> &'static Script {
        &scripts::QUORUM
    }

    fn acks(_command: &NodeCommand) -> Replication {
        Replication::NONE
    }

    /// A release may run twice; but "gone" about its second copy means that the first one ran, and
    /// only its sender can tell that from a loss.
    fn repeats(command: &NodeCommand) -> bool {
        !matches!(command.word, Word::End { .. } | Word::Keep { .. } | Word::Force { .. })
    }

    /// Where all are numbers, they come as one text.
    fn answers(answer: Value) -> Value {
        let Value::BulkString(text) = &answer else { return answer };
        let number = |digits: &[u8]| str::from_utf8(digits).ok()?.parse().ok().map(Value::Int);
        let numbers = text.split(|byte| *byte == b' ').map(number);
        numbers.collect::<Option<_>>().map_or(answer, Value::Array)
    }

    fn write<'a>(&self, to: &mut Cmd, commands: impl Iterator<Item = &'a NodeCommand> + Clone) {
        let (mut text, mut written) = (String::with_capacity(128), String::new());
        to.arg(&self.boot);
        for command in commands.clone() {
            to.arg(self.keys.lease(&command.name));
        }
        to.arg(&self.settings);
        for command in commands {
            let common = match &command.word {
                Word::Ask { ttl, heard, label, keeps, .. } => Some((ttl, *heard, label, *keeps)),
                Word::Spread { ttl, label, keeps, .. } => {
                    Some((ttl, Duration::ZERO, label, *keeps))
                }
                _ => None,
            };
            // What several commands in a row have in common is written once.
            if let Some((ttl, heard, label, keeps)) = common {
                text.clear();
                // A text takes everything.
                let _ = write!(text, "{:08} {:08} ", millis(*ttl), millis(heard));
                text.extend(keeps.then_some(RuntimeLabel::KEEPS));
                text.push_str(label.as_str());
                if text != written {
                    to.arg(&*text);
                    written.clone_from(&text);
                }
            }
            write(to, command.id, &command.word, &mut text);
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Writes word and arguments; `text` is room for ids.
fn write(to: &mut Cmd, id: AcquisitionId, word: &Word, text: &mut String) {
    text.clear();
    // The numbers behind the id of a command that needs no word.
    let short = match *word {
        // So long are times in microseconds, and so is what the script takes for one.
        Word::Ask { attempt, ballot, waited, .. }
            if (1_000_000_000_000_000..10_000_000_000_000_000).contains(&ballot)
                && waited.is_zero() =>
        {
            Some(format!(" {attempt} {ballot}"))
        }
        Word::End { attempt, fence: 0, marks: false } => Some(format!(" {attempt} ")),
        _ => None,
    };
    if let Some(numbers) = short {
        text.push(' ');
        id.write_stored(text);
        text.push_str(&numbers);
        to.arg(&**text);
        return;
    }
    id.write_stored(text);
    let mut begin = |word: &str| {
        to.arg(word).arg(&**text);
    };
    match word {
        Word::Ask { attempt, ballot, waited, .. } => {
            begin("ask");
            to.arg(*attempt).arg(*ballot).arg(micros(*waited));
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
