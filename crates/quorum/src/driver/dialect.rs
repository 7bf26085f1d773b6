use std::{fmt::Write, time::Duration};

use leasehold_core::{
    AcquisitionId, FenceSettings, QuorumSettings, Replication, RuntimeLabel, StoreError,
    WITHDRAWAL_MARK, printable,
    store::{KeyScheme, WaiterRecord},
};
use leasehold_redis::{
    Dialect, Script,
    decode::{id, layout_trouble, not_understood, text},
    millis,
};
use redis::{Cmd, Value};

use super::scripts;
use crate::{Busy, NodeAnswer, NodeCommand, NodeLease, NodeReply, Vote, Word};

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

/// What a node's answer to a command means.
pub(super) fn answer(word: &Word, value: &Value) -> NodeReply {
    let understood = match value {
        Value::Int(number) => of_number(word, u64::try_from(*number).ok()),
        // Beside answers that are lists.
        Value::BulkString(digits) => {
            of_number(word, str::from_utf8(digits).ok().and_then(|digits| digits.parse().ok()))
        }
        Value::Array(parts) => return of_parts(parts, value),
        _ => None,
    };
    understood.ok_or_else(|| not_understood(value))
}

/// The answers that are usual.
fn of_number(word: &Word, number: Option<u64>) -> Option<NodeAnswer> {
    let number = number?;
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

fn of_parts(parts: &[Value], whole: &Value) -> NodeReply {
    let word = parts.first().and_then(text).unwrap_or_default();
    let understood = match &*word {
        "layout" => return Err(layout_trouble(&parts.get(1).and_then(text).unwrap_or_default())),
        "exhausted" => return Err(StoreError::exhausted()),
        "granted" => granted(parts),
        "busy" => busy(parts),
        "withdrawn" => number(parts, 1).map(|ended| NodeAnswer::Withdrawn { ended: ended == 1 }),
        "settled" => {
            time(parts, 1).map(|remaining| NodeAnswer::Held { remaining, contended: true })
        }
        "kept" => time(parts, 1).map(|remaining| NodeAnswer::Kept { remaining }),
        "ended" => number(parts, 1).map(|counter| NodeAnswer::Ended { counter }),
        "free" => number(parts, 1).map(|counter| NodeAnswer::Free { counter }),
        "held" => held(parts).map(|lease| NodeAnswer::Record(Box::new(lease))),
        "out" => match parts.get(1) {
            // A negative one is that of a node without a boot mark.
            Some(Value::Int(_)) => Some(NodeAnswer::Out { rest: time(parts, 1) }),
            _ => None,
        },
        _ => None,
    };
    understood.ok_or_else(|| not_understood(whole))
}

fn granted(parts: &[Value]) -> Option<NodeAnswer> {
    Some(NodeAnswer::Granted(Vote {
        before: number(parts, 1)?,
        accepted: number(parts, 2)? == 1,
        least: number(parts, 3)?,
        remaining: time(parts, 4)?,
        contended: number(parts, 5)? == 1,
        now: number(parts, 6)?,
    }))
}

fn busy(parts: &[Value]) -> Option<NodeAnswer> {
    Some(NodeAnswer::Busy(Busy {
        remaining: time(parts, 1)?,
        keeps: number(parts, 2)? == 1,
        older: number(parts, 3)?,
        holder: id(parts.get(4)?),
        waited: Duration::from_micros(number(parts, 5)?),
        now: number(parts, 6)?,
    }))
}

fn held(parts: &[Value]) -> Option<NodeLease> {
    Some(NodeLease {
        id: id(parts.get(1)?)?,
        attempt: number(parts, 2)?,
        fence: number(parts, 3)?,
        before: number(parts, 4)?,
        holds: u32::try_from(number(parts, 5)?).ok()?,
        remaining: time(parts, 6)?,
        label: printable(&text(parts.get(7)?)?).into_owned(),
        held_for: Duration::from_micros(number(parts, 8)?),
        kept: number(parts, 9)? == 1,
        waiters: waiters(parts.get(10)?)?,
    })
}

fn waiters(list: &Value) -> Option<Vec<WaiterRecord>> {
    let Value::Array(list) = list else { return None };
    let waiter = |one: &Value| {
        let Value::Array(parts) = one else { return None };
        Some(WaiterRecord {
            id: id(parts.first()?)?,
            waiting_for: Duration::from_micros(number(parts, 1)?),
            silent_for: time(parts, 2).unwrap_or_default(),
            label: printable(&text(parts.get(3)?)?).into_owned(),
        })
    };
    list.iter().map(waiter).collect()
}

/// A number, as such or as text.
fn number(parts: &[Value], at: usize) -> Option<u64> {
    match parts.get(at)? {
        Value::Int(number) => u64::try_from(*number).ok(),
        Value::BulkString(digits) => str::from_utf8(digits).ok()?.parse().ok(),
        _ => None,
    }
}

/// A time in milliseconds.
fn time(parts: &[Value], at: usize) -> Option<Duration> {
    number(parts, at).map(Duration::from_millis)
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
