use std::{fmt::Write, time::Duration};

use leasehold_core::{
    AcquisitionId, FenceSettings, Mode, QuorumSettings, Replication, RuntimeLabel, StoreError,
    WITHDRAWAL_MARK, printable,
    store::{KeyScheme, WaiterRecord},
};
use leasehold_redis::{
    Dialect, Script,
    decode::{ScriptReply, id, not_understood, number, text},
    millis,
};
use redis::{Cmd, Value};

use super::scripts;
use crate::{Busy, NodeAnswer, NodeCommand, NodeLease, NodeReply, Vote, Word, state::micros};

/// Writes commands as the files in `lua` take them.
#[derive(Debug)]
pub(super) struct NodeDialect {
    keys: KeyScheme,
    boot: String,
    fencing: FenceSettings,
    /// What all calls have in common.
    settings: String,
}

impl NodeDialect {
    pub(super) fn new(keys: &KeyScheme, fencing: FenceSettings, settings: &QuorumSettings) -> Self {
        let tolerance = settings.clock_tolerance().as_micros();
        let settings = format!("{tolerance:010} {}", keys.channels());
        Self { boot: keys.boot(), fencing, settings, keys: keys.clone() }
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

    fn retention(&self, command: &NodeCommand) -> u64 {
        self.fencing.retention_millis(&command.name)
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
        let retention = commands.clone().next().map_or(0, |first| self.retention(first));
        // A text takes everything.
        let _ = write!(text, "{retention:013} {}", self.settings);
        to.arg(&*text);
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
    let id = text.as_str();
    match word {
        Word::Ask { attempt, ballot, waited, .. } => {
            begin(to, "ask", id).arg(*attempt).arg(*ballot).arg(micros(*waited))
        }
        Word::Settle { attempt, fence } => begin(to, "settle", id).arg(*attempt).arg(*fence),
        Word::Renew { attempt, fence, ttl } => {
            begin(to, "renew", id).arg(*attempt).arg(*fence).arg(millis(*ttl))
        }
        Word::Spread { attempt, fence, before, holds, .. } => {
            let (count, number) = holds.map_or((1, 0), |holds| (holds.count.get(), holds.number));
            let to = begin(to, "spread", id).arg(*attempt).arg(*fence).arg(*before);
            to.arg(count).arg(number)
        }
        Word::Hold { attempt, update, ttl } => {
            let to = begin(to, "hold", id).arg(*attempt);
            to.arg(update.count.get()).arg(update.number).arg(ttl.as_millis())
        }
        Word::End { attempt, fence, marks } => {
            let life = if *marks { millis(WITHDRAWAL_MARK) } else { 0 };
            begin(to, "end", id).arg(*attempt).arg(*fence).arg(life)
        }
        Word::Keep { attempt, fence, rest } => {
            begin(to, "keep", id).arg(*attempt).arg(*fence).arg(millis(*rest))
        }
        Word::Withdraw => begin(to, "withdraw", id).arg(millis(WITHDRAWAL_MARK)),
        Word::Force { fence } => begin(to, "force", id).arg(*fence),
        Word::Pass { fence } => begin(to, "pass", id).arg(*fence),
        Word::Inspect => begin(to, "inspect", id),
    };
}

fn begin<'a>(to: &'a mut Cmd, word: &str, id: &str) -> &'a mut Cmd {
    to.arg(word).arg(id)
}

/// What a node's answer to a command means.
pub(super) fn answer(word: &Word, value: &Value) -> NodeReply {
    // Numbers come as text beside answers that are lists.
    if let Value::Int(_) | Value::BulkString(_) = value {
        let understood = number(value).and_then(|number| of_number(word, number));
        return understood.ok_or_else(|| not_understood(value));
    }
    let reply = ScriptReply::new(value)?;
    Ok(match reply.word() {
        b"granted" => NodeAnswer::Granted(Vote {
            before: reply.number(1)?,
            accepted: reply.number(2)? == 1,
            least: reply.number(3)?,
            remaining: reply.millis(4)?,
            contended: reply.number(5)? == 1,
            now: reply.number(6)?,
        }),
        b"busy" => NodeAnswer::Busy(Busy {
            remaining: reply.millis(1)?,
            keeps: reply.number(2)? == 1,
            older: reply.number(3)?,
            holder: reply.read(4, |holder| Some(id(holder)))?,
            now: reply.number(5)?,
        }),
        b"withdrawn" => NodeAnswer::Withdrawn { ended: reply.number(1)? == 1 },
        b"settled" => NodeAnswer::Held { remaining: reply.millis(1)?, contended: true },
        b"kept" => NodeAnswer::Kept { remaining: reply.millis(1)? },
        b"ended" => NodeAnswer::Ended { counter: reply.number(1)? },
        b"free" => NodeAnswer::Free { counter: reply.number(1)? },
        b"held" => NodeAnswer::Record(Box::new(lease(&reply)?)),
        b"out" => reply.read(1, out)?,
        _ => return Err(reply.trouble()),
    })
}

/// The answers that are usual.
fn of_number(word: &Word, number: u64) -> Option<NodeAnswer> {
    Some(match word {
        // The last token before a grant that is as usual.
        Word::Ask { ttl, .. } if number > 0 => {
            let remaining = *ttl;
            let (before, accepted, least, contended, now) = (number, true, 0, false, 0);
            NodeAnswer::Granted(Vote { before, accepted, least, remaining, contended, now })
        }
        Word::End { .. } if number == 1 => NodeAnswer::Ended { counter: 0 },
        Word::Settle { .. } | Word::Renew { .. } | Word::Spread { .. } | Word::Hold { .. }
            if number > 0 =>
        {
            NodeAnswer::Held { remaining: Duration::from_millis(number), contended: false }
        }
        _ if number == 0 => NodeAnswer::Gone,
        _ => return None,
    })
}

fn lease(reply: &ScriptReply<'_>) -> Result<NodeLease, StoreError> {
    Ok(NodeLease {
        id: reply.read(1, id)?,
        attempt: reply.number(2)?,
        fence: reply.number(3)?,
        before: reply.number(4)?,
        holds: reply.read(5, |holds| u32::try_from(number(holds)?).ok())?,
        remaining: reply.millis(6)?,
        label: printable(&reply.text(7)?).into_owned(),
        held_for: Duration::from_micros(reply.number(8)?),
        kept: reply.number(9)? == 1,
        waiters: reply.read(10, waiters)?,
    })
}

fn waiters(list: &Value) -> Option<Vec<WaiterRecord>> {
    let Value::Array(list) = list else { return None };
    let waiter = |one: &Value| {
        let Value::Array(parts) = one else { return None };
        let [one, waiting, silent, label, ..] = &parts[..] else { return None };
        Some(WaiterRecord {
            id: id(one)?,
            mode: Mode::Write,
            waiting_for: Duration::from_micros(number(waiting)?),
            silent_for: Duration::from_millis(number(silent).unwrap_or(0)),
            label: printable(&text(label)?).into_owned(),
        })
    };
    list.iter().map(waiter).collect()
}

/// How long a node is out still; a negative time is that of one without a boot mark.
fn out(left: &Value) -> Option<NodeAnswer> {
    let Value::Int(left) = left else { return None };
    Some(NodeAnswer::Out { rest: u64::try_from(*left).ok().map(Duration::from_millis) })
}

#[cfg(test)]
mod tests {
    use leasehold_core::RuntimeLabel;
    use proptest::prelude::*;

    use super::*;
    use crate::values::{config, is_short, replies};

    proptest! {
        #![proptest_config(config())]

        #[test]
        fn every_answer_is_read(reply in replies()) {
            let (attempt, fence, ttl) = (1, 0, Duration::from_secs(30));
            let ask = Word::Ask {
                attempt,
                ballot: 1,
                ttl,
                waited: Duration::ZERO,
                heard: Duration::ZERO,
                label: RuntimeLabel::new("label"),
                keeps: false,
            };
            let end = Word::End { attempt, fence, marks: false };
            for word in [ask, end, Word::Renew { attempt, fence, ttl }, Word::Inspect] {
                is_short(answer(&word, &reply));
            }
            NodeDialect::answers(reply);
        }
    }
}
