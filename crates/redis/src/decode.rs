//! Reads the answers of scripts, and tells of those that are not understood.

use std::{fmt, str::FromStr, time::Duration};

use leasehold_core::{
    AcquisitionId, LockName, Mode, StoreError, StoreErrorKind, Ttl, printable,
    store::{
        AcquireAnswer, ForceReleaseAnswer, Granted, HoldAnswer, Inspection, LeaseRecord, Place,
        Push, ReleaseAnswer, RenewAnswer, WaiterRecord, WithdrawAnswer,
    },
    without_words,
};
use redis::Value;

use super::classify::classify_words;

/// The answer of a script: values, as a rule behind a word.
pub struct ScriptReply<'a>(&'a [Value]);

impl<'a> ScriptReply<'a> {
    /// Takes an answer apart.
    ///
    /// # Errors
    ///
    /// [`StoreError`] of kind `Corrupt` when it is no list, as in the other methods when a value is not what it
    /// is read as.
    pub fn new(value: &'a Value) -> Result<Self, StoreError> {
        match value {
            Value::Array(parts) => Ok(Self(parts)),
            other => Err(not_understood(other)),
        }
    }

    /// The word.
    pub fn word(&self) -> &'a [u8] {
        match self.0.first() {
            Some(Value::BulkString(word)) => word,
            _ => b"",
        }
    }

    /// Reads a value.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn read<T>(
        &self,
        at: usize,
        of: impl FnOnce(&'a Value) -> Option<T>,
    ) -> Result<T, StoreError> {
        self.0.get(at).and_then(of).ok_or_else(|| self.not_understood())
    }

    /// Reads a text.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn text(&self, at: usize) -> Result<String, StoreError> {
        self.read(at, text)
    }

    fn parsed<T: FromStr>(&self, at: usize) -> Result<T, StoreError> {
        self.read(at, parsed)
    }

    /// Reads a [number].
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn number(&self, at: usize) -> Result<u64, StoreError> {
        self.read(at, number)
    }

    /// Reads a time in milliseconds.
    ///
    /// # Errors
    ///
    /// As [`new`](Self::new).
    pub fn millis(&self, at: usize) -> Result<Duration, StoreError> {
        self.number(at).map(Duration::from_millis)
    }

    /// Whether a lease is not there because the data of its lock was lost.
    fn says_lost(&self) -> bool {
        matches!(self.0.get(1), Some(Value::BulkString(word)) if word == b"lost")
    }

    /// A grant, as every script writes it after the word.
    fn granted(&self) -> Result<Granted, StoreError> {
        Ok(Granted {
            first: self.parsed(1)?,
            last: self.parsed(2)?,
            remaining: self.millis(3)?,
            contended: self.number(4)? == 1,
            regressed: self.number(5)? == 1,
        })
    }

    /// A place in the queue, as every script writes it after the word.
    fn place(&self) -> Result<Place, StoreError> {
        Ok(Place { remaining: self.millis(1)?, ahead: self.number(2)? })
    }

    /// The error for an answer about bad data, the same for every script, or for one whose word is not known.
    pub fn trouble(&self) -> StoreError {
        let found = self.text(1).unwrap_or_default();
        match self.word() {
            b"layout" => layout_trouble(&found),
            b"exhausted" => StoreError::exhausted(),
            _ => self.not_understood(),
        }
    }

    fn not_understood(&self) -> StoreError {
        not_understood(&self.0)
    }
}

/// The error for data of another layout.
fn layout_trouble(found: &str) -> StoreError {
    let (which, remedy) = match found {
        "1" | "2" | "3" => (
            "an older version of Leasehold wrote",
            "stop the programs that use the older version and delete the key, or choose \
             another namespace",
        ),
        "4" => (
            "a runtime of one server wrote",
            "use servers of their own for a quorum, or another namespace",
        ),
        "5" => (
            "a runtime of a quorum wrote",
            "connect with redis+quorum:// and all of its nodes, or choose another namespace",
        ),
        _ => (
            "this version does not know",
            "update this program, or choose another namespace if another program uses the key",
        ),
    };
    let what = format!("the key holds data of layout version {found:?}, which {which}");
    StoreError::new(StoreErrorKind::Config, what, remedy).as_answer()
}

/// The server's words, if it refused one command of many.
pub(super) fn refusal(answer: &Value) -> Option<String> {
    let Value::Array(parts) = answer else { return None };
    let [Value::BulkString(word), words] = &parts[..] else { return None };
    if word == b"refused" { text(words) } else { None }
}

/// The text of a value, if it is one.
pub fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) | Value::VerbatimString { text, .. } => Some(text.clone()),
        _ => None,
    }
}

/// What the text of a value says.
fn parsed<T: FromStr>(value: &Value) -> Option<T> {
    let Value::BulkString(bytes) = value else { return None };
    str::from_utf8(bytes).ok()?.parse().ok()
}

/// A number, as such or as text.
pub fn number(value: &Value) -> Option<u64> {
    match value {
        Value::Int(number) => u64::try_from(*number).ok(),
        other => parsed(other),
    }
}

/// The id of an acquisition, with its word.
pub fn id(value: &Value) -> Option<AcquisitionId> {
    AcquisitionId::of_stored(&text(value)?)
}

/// The answer to an acquire for `ttl`; a usual grant is one text.
pub(super) fn acquire(value: &Value, ttl: Ttl) -> Result<AcquireAnswer, StoreError> {
    if let Value::BulkString(tokens) = value {
        let granted = usually_granted(tokens, ttl).ok_or_else(|| not_understood(value));
        return granted.map(AcquireAnswer::Granted);
    }
    let reply = ScriptReply::new(value)?;
    match reply.word() {
        b"granted" => reply.granted().map(AcquireAnswer::Granted),
        b"busy" => {
            Ok(AcquireAnswer::Busy { remaining: reply.millis(1)?, keeps: reply.number(2)? == 1 })
        }
        b"queued" => reply.place().map(AcquireAnswer::Queued),
        b"withdrawn" => Ok(AcquireAnswer::Withdrawn),
        _ => Err(reply.trouble()),
    }
}

/// A grant for the whole ttl, with nobody waiting and no counter behind: `<first> <last>`.
fn usually_granted(tokens: &[u8], ttl: Ttl) -> Option<Granted> {
    let (first, last) = str::from_utf8(tokens).ok()?.split_once(' ')?;
    let (first, last) = (first.parse().ok()?, last.parse().ok()?);
    Some(Granted { first, last, remaining: ttl.get(), contended: false, regressed: false })
}

pub(super) fn hold(value: &Value) -> Result<HoldAnswer, StoreError> {
    let reply = ScriptReply::new(value)?;
    match reply.word() {
        b"held" => Ok(HoldAnswer::Held { remaining: reply.millis(1)? }),
        b"gone" if reply.says_lost() => Ok(HoldAnswer::DataLost),
        b"gone" => Ok(HoldAnswer::Gone),
        _ => Err(reply.trouble()),
    }
}

pub(super) fn release(value: &Value) -> Result<ReleaseAnswer, StoreError> {
    if *value == Value::Int(1) {
        return Ok(ReleaseAnswer::Released);
    }
    let reply = ScriptReply::new(value)?;
    match reply.word() {
        b"released" => Ok(ReleaseAnswer::Released),
        b"kept" => Ok(ReleaseAnswer::Kept { remaining: reply.millis(1)? }),
        b"next-granted" => reply.granted().map(ReleaseAnswer::NextGranted),
        b"next-queued" => reply.place().map(ReleaseAnswer::NextQueued),
        b"gone" if reply.says_lost() => Ok(ReleaseAnswer::DataLost),
        b"gone" => Ok(ReleaseAnswer::Gone),
        _ => Err(reply.trouble()),
    }
}

/// The answers to a batch of renewals, which one script renews: it succeeds or fails for all.
pub(super) fn renew(
    value: &Value,
    asked: usize,
) -> Result<Vec<Result<RenewAnswer, StoreError>>, StoreError> {
    let reply = ScriptReply::new(value)?;
    if reply.0.len() != asked {
        return Err(reply.not_understood());
    }
    let answer = |part: &Value| match part {
        Value::Int(0) => Ok(RenewAnswer::Gone),
        Value::Int(-1) => Ok(RenewAnswer::Corrupt),
        Value::Int(-2) => Ok(RenewAnswer::DataLost),
        Value::Int(left) if *left > 0 => {
            Ok(RenewAnswer::Renewed { remaining: Duration::from_millis(left.unsigned_abs()) })
        }
        _ => Err(reply.not_understood()),
    };
    reply.0.iter().map(|part| answer(part).map(Ok)).collect()
}

pub(super) fn withdraw(value: &Value) -> Result<WithdrawAnswer, StoreError> {
    let reply = ScriptReply::new(value)?;
    match reply.word() {
        b"withdrawn" => Ok(WithdrawAnswer { ended_grant: reply.number(1)? == 1 }),
        _ => Err(reply.trouble()),
    }
}

/// What looks at so many locks show, in one answer.
pub(super) fn inspect(
    value: &Value,
    asked: usize,
) -> Result<Vec<Result<Inspection, StoreError>>, StoreError> {
    let ScriptReply(answers) = ScriptReply::new(value)?;
    if answers.len() != asked {
        return Err(not_understood(&answers));
    }
    Ok(answers.iter().map(inspection).collect())
}

fn inspection(value: &Value) -> Result<Inspection, StoreError> {
    if let Some(words) = refusal(value) {
        return Err(classify_words(&words));
    }
    let reply = ScriptReply::new(value)?;
    match reply.word() {
        b"free" => Ok(Inspection::Free { last_fence: reply.text(1)?.parse().ok() }),
        // The script passes on what stands in the text: an id or a number that is none is foreign.
        b"held" => lease_record(&reply)
            .map(Inspection::Held)
            .map_err(|_| classify_words("WRONGTYPE the text is not that of a lock")),
        _ => Err(reply.trouble()),
    }
}

fn lease_record(reply: &ScriptReply<'_>) -> Result<LeaseRecord, StoreError> {
    let server_micros: u64 = reply.parsed(2)?;
    let waiters = waiter_records(reply.0.get(3), server_micros);
    let (mode, readers) = reply.read(11, readers)?;
    Ok(LeaseRecord {
        id: reply.read(4, id)?,
        mode,
        readers,
        fence: reply.parsed(5)?,
        holds: reply.parsed(6)?,
        remaining: reply.millis(1)?,
        label: printable(&reply.text(7)?).into_owned(),
        held_for: Duration::from_micros(server_micros.saturating_sub(reply.parsed(8)?)),
        kept: reply.number(9)? == 1,
        idle: false,
        keeps: reply.number(10)? == 1,
        waiters: waiters.ok_or_else(|| reply.not_understood())?,
    })
}

/// The mode of a lease, and its readers, in the order of their ids.
fn readers(value: &Value) -> Option<(Mode, Vec<AcquisitionId>)> {
    match value {
        Value::Int(0) => Some((Mode::Write, Vec::new())),
        Value::Array(ids) => Some((Mode::Read, ids.iter().map(id).collect::<Option<_>>()?)),
        _ => None,
    }
}

fn waiter_records(list: Option<&Value>, server_micros: u64) -> Option<Vec<WaiterRecord>> {
    let Some(Value::Array(parts)) = list else { return None };
    let record = |waiter: &[Value]| {
        let id = id(&waiter[0])?;
        let heard: u64 = text(&waiter[1])?.parse().ok()?;
        let arrived: u64 = text(&waiter[3])?.parse().ok()?;
        let ago = |then| Duration::from_micros(server_micros.saturating_sub(then));
        let (waiting_for, silent_for) = (ago(arrived), ago(heard));
        let label = printable(&text(&waiter[2])?).into_owned();
        let mode = if number(&waiter[4])? == 1 { Mode::Read } else { Mode::Write };
        Some(WaiterRecord { id, mode, label, waiting_for, silent_for })
    };
    parts.chunks_exact(5).map(record).collect()
}

pub(super) fn force_release(value: &Value) -> Result<ForceReleaseAnswer, StoreError> {
    let reply = ScriptReply::new(value)?;
    match reply.word() {
        b"ended" => Ok(ForceReleaseAnswer::Ended { fence: reply.text(1)?.parse().ok() }),
        b"changed" => Ok(ForceReleaseAnswer::Changed),
        _ => Err(reply.trouble()),
    }
}

/// The error of an answer that no version of the scripts gives. It shows the beginning of the answer.
pub fn not_understood(answer: &impl fmt::Debug) -> StoreError {
    let answer = without_words(&shown(answer));
    StoreError::new(
        StoreErrorKind::Corrupt,
        format!("the server's answer {answer} is not understood"),
        "use versions of Leasehold with one layout per namespace, and no proxy that rewrites scripts",
    )
}

/// The beginning of an answer that is not understood.
pub(super) fn shown(answer: &impl fmt::Debug) -> String {
    const MOST: usize = 300;
    let mut shown = format!("{answer:?}");
    if let Some((end, _)) = shown.char_indices().nth(MOST) {
        shown.truncate(end);
        shown.push('…');
    }
    shown
}

/// The answer to `SCAN`: the next cursor, which is 0 at the end, and keys.
pub(super) fn scan(value: Value) -> Result<(u64, Vec<Vec<u8>>), StoreError> {
    let read = || {
        let Value::Array(parts) = value else { return None };
        let [cursor, Value::Array(keys)] = <[Value; 2]>::try_from(parts).ok()? else { return None };
        let key = |key| if let Value::BulkString(key) = key { Some(key) } else { None };
        Some((text(&cursor)?.parse().ok()?, keys.into_iter().map(key).collect::<Option<_>>()?))
    };
    read().ok_or_else(|| not_understood(&format_args!("to SCAN")))
}

/// Reads a message on the channel of a runtime; `None` for one that is not understood.
///
/// The scripts write it. The name comes last, because it may contain spaces.
pub(super) fn push(payload: &[u8]) -> Option<Push> {
    let (word, rest) = str::from_utf8(payload).ok()?.split_once(' ')?;
    let mut words = Words(rest);
    match word {
        "granted" => {
            let (id, first, last) = (words.id()?, words.next()?, words.next()?);
            let heartbeat = words.next()?;
            let remaining = Duration::from_millis(words.next()?);
            let (contended, regressed) = (words.flag()?, words.flag()?);
            let granted = Granted { first, last, remaining, contended, regressed };
            Some(Push::Granted { name: words.name()?, id, granted, heartbeat })
        }
        "force-released" => {
            let (id, fence) = (words.id()?, words.next()?);
            Some(Push::ForceReleased { name: words.name()?, id, fence })
        }
        "wanted" => {
            let (id, fence) = (words.id()?, words.next()?);
            Some(Push::Wanted { name: words.name()?, id, fence })
        }
        _ => None,
    }
}

/// The rest of a message.
struct Words<'a>(&'a str);

impl Words<'_> {
    fn part(&mut self) -> Option<&str> {
        let (part, rest) = self.0.split_once(' ')?;
        self.0 = rest;
        Some(part)
    }

    fn next<T: FromStr>(&mut self) -> Option<T> {
        self.part()?.parse().ok()
    }

    fn id(&mut self) -> Option<AcquisitionId> {
        AcquisitionId::of_stored(self.part()?)
    }

    fn flag(&mut self) -> Option<bool> {
        self.next::<u8>().and_then(|digit| (digit <= 1).then_some(digit == 1))
    }

    fn name(&self) -> Option<LockName> {
        LockName::new(self.0).ok()
    }
}

#[cfg(test)]
mod tests {
    use leasehold_core::{AcquisitionId, Fence, RuntimeId};
    use uuid::Uuid;

    use super::*;

    const ID: &str = "00000000-0000-0000-0000-000000000000:7";

    fn id() -> AcquisitionId {
        AcquisitionId::new(RuntimeId::new(Uuid::nil()), 7)
    }

    fn token(number: u64) -> Fence {
        Fence::try_from(number).unwrap()
    }

    #[test]
    fn a_grant_is_told_with_all_that_belongs_to_it() {
        let text = format!("granted {ID} 1700000000000001 1700000000000016 41 3000 1 0 a b");
        let granted = Granted {
            first: token(1_700_000_000_000_001),
            last: token(1_700_000_000_000_016),
            remaining: Duration::from_secs(3),
            contended: true,
            regressed: false,
        };
        let name = LockName::new("a b").unwrap();
        let told = Push::Granted { name, id: id(), granted, heartbeat: 41 };
        assert_eq!(push(text.as_bytes()), Some(told));
    }

    #[test]
    fn a_holder_that_cannot_be_is_foreign_text() {
        let held = vec![Value::BulkString(b"held".to_vec()), Value::Int(i64::MIN)];
        let seen = inspect(&Value::Array(vec![Value::Array(held)]), 1).unwrap();
        let [Err(error)] = &seen[..] else { panic!("{seen:?}") };
        assert!(error.to_string().contains("not that of a lock"), "{error}");
    }

    #[test]
    fn a_force_release_is_told_with_its_fence() {
        for name in ["orders/42", " two  spaces ", "ü\n"] {
            let text = format!("force-released {ID} 5 {name}");
            let name = LockName::new(name).unwrap();
            let told = Push::ForceReleased { name, id: id(), fence: token(5) };
            assert_eq!(push(text.as_bytes()), Some(told));
        }
    }

    #[test]
    fn a_runtime_that_waits_is_told_with_the_lease_that_it_waits_for() {
        for name in ["orders/42", " two  spaces ", "ü\n"] {
            let text = format!("wanted {ID} 5 {name}");
            let name = LockName::new(name).unwrap();
            let told = Push::Wanted { name, id: id(), fence: token(5) };
            assert_eq!(push(text.as_bytes()), Some(told));
        }
    }

    #[test]
    fn what_is_not_understood_is_nothing() {
        let of_id = [
            "granted ID",
            "granted ID 1 2 3 4 0 0",
            "granted ID 1 2 3 4 0 0 ",
            "granted ID 1 2 3 4 2 0 a",
            "granted ID 0 2 3 4 0 0 a",
            "granted ID 1 2 -3 4 0 0 a",
            "granted ID  1 2 3 4 0 0 a",
            "granted x 1 2 3 4 0 0 a",
            "force-released ID 5 ",
            "force-released ID 0 a",
            "wanted ID 5 ",
            "wanted ID a",
            "wanted ID 0 a",
            "wanted x 5 a",
            "Granted ID 1 2 3 4 0 0 a",
            "preflight",
            "",
        ];
        for text in of_id.map(|text| text.replace("ID", ID)) {
            assert_eq!(push(text.as_bytes()), None, "{text:?}");
        }
        assert_eq!(push(b"force-released \xff 5 a"), None);
    }
}
