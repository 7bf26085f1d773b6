use std::{str::FromStr, time::Duration};

use redis::Value;

use super::classify::classify_words;
use crate::{
    store::{
        AcquireAnswer, ForceReleaseAnswer, Granted, HoldAnswer, Inspection, LeaseRecord, Place,
        ReleaseAnswer, RenewAnswer, StoreError, StoreErrorKind, WaiterRecord, WithdrawAnswer,
    },
    types::{AcquisitionId, FenceToken},
};

/// The answer of a script: a word, then its values.
pub(super) struct Reply(Vec<Value>);

impl Reply {
    /// Takes an answer apart.
    pub(super) fn new(value: Value) -> Result<Self, StoreError> {
        match value {
            Value::Array(parts) => Ok(Self(parts)),
            other => Err(not_understood(&format!("{other:?}"))),
        }
    }

    fn word(&self) -> &[u8] {
        match self.0.first() {
            Some(Value::BulkString(word)) => word,
            _ => b"",
        }
    }

    fn text(&self, at: usize) -> Result<String, StoreError> {
        self.0.get(at).and_then(text).ok_or_else(|| self.not_understood())
    }

    fn parsed<T: FromStr>(&self, at: usize) -> Result<T, StoreError> {
        match self.0.get(at) {
            Some(Value::BulkString(bytes)) => {
                str::from_utf8(bytes).ok().and_then(|text| text.parse().ok())
            }
            _ => None,
        }
        .ok_or_else(|| self.not_understood())
    }

    fn number(&self, at: usize) -> Result<u64, StoreError> {
        match self.0.get(at) {
            Some(Value::Int(number)) => u64::try_from(*number).ok(),
            _ => None,
        }
        .ok_or_else(|| self.not_understood())
    }

    fn millis(&self, at: usize) -> Result<Duration, StoreError> {
        self.number(at).map(Duration::from_millis)
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

    /// The error for an answer about bad data, the same for every script.
    fn trouble(&self) -> StoreError {
        match self.word() {
            b"no-ttl" => StoreError::new(
                StoreErrorKind::Corrupt,
                "the lease key has no time to live, so its holder would never be waited out",
                "somebody persisted or copied it; give it one with PEXPIRE, or delete it",
            ),
            b"layout" => StoreError::new(
                StoreErrorKind::Config,
                format!(
                    "the key holds a hash of layout version {:?}, which this version does not know",
                    self.text(1).unwrap_or_default()
                ),
                "update this program, or choose another namespace if another program uses the key",
            )
            .as_answer(),
            b"counter" => StoreError::new(
                StoreErrorKind::Corrupt,
                format!(
                    "the fence counter holds {:?}, which is not a token",
                    self.text(1).unwrap_or_default()
                ),
                "find out who wrote it, then delete the key; tokens go on from the server's clock",
            ),
            b"exhausted" => StoreError::exhausted(),
            b"foreign" => classify_words(self.text(1).unwrap_or_default()),
            _ => self.not_understood(),
        }
    }

    fn not_understood(&self) -> StoreError {
        not_understood(&format!("{:?}", self.0))
    }
}

/// A bulk or simple string as text.
pub(super) fn text(value: &Value) -> Option<String> {
    match value {
        Value::BulkString(bytes) => Some(String::from_utf8_lossy(bytes).into_owned()),
        Value::SimpleString(text) => Some(text.clone()),
        _ => None,
    }
}

pub(super) fn acquire(value: Value) -> Result<AcquireAnswer, StoreError> {
    let reply = Reply::new(value)?;
    match reply.word() {
        b"granted" => reply.granted().map(AcquireAnswer::Granted),
        b"busy" => Ok(AcquireAnswer::Busy { remaining: reply.millis(1)? }),
        b"queued" => reply.place().map(AcquireAnswer::Queued),
        b"withdrawn" => Ok(AcquireAnswer::Withdrawn),
        _ => Err(reply.trouble()),
    }
}

/// One answer for each waiter of a batch.
pub(super) fn heartbeat(
    value: Value,
    asked: usize,
) -> Result<Vec<Result<AcquireAnswer, StoreError>>, StoreError> {
    let reply = Reply::new(value)?;
    if reply.0.len() != asked {
        return Err(reply.not_understood());
    }
    Ok(reply.0.into_iter().map(acquire).collect())
}

pub(super) fn hold(value: Value) -> Result<HoldAnswer, StoreError> {
    let reply = Reply::new(value)?;
    match reply.word() {
        b"held" => Ok(HoldAnswer::Held { remaining: reply.millis(1)? }),
        b"gone" => Ok(HoldAnswer::Gone),
        _ => Err(reply.trouble()),
    }
}

pub(super) fn release(value: Value) -> Result<ReleaseAnswer, StoreError> {
    let reply = Reply::new(value)?;
    match reply.word() {
        b"released" => Ok(ReleaseAnswer::Released),
        b"kept" => Ok(ReleaseAnswer::Kept { remaining: reply.millis(1)? }),
        b"next-granted" => reply.granted().map(ReleaseAnswer::NextGranted),
        b"next-queued" => reply.place().map(ReleaseAnswer::NextQueued),
        b"gone" => Ok(ReleaseAnswer::Gone),
        _ => Err(reply.trouble()),
    }
}

pub(super) fn renew(value: Value, asked: usize) -> Result<Vec<RenewAnswer>, StoreError> {
    let reply = Reply::new(value)?;
    if reply.0.len() != asked {
        return Err(reply.not_understood());
    }
    let answer = |part: &Value| match part {
        Value::Int(0) => Ok(RenewAnswer::Gone),
        Value::Int(-1) => Ok(RenewAnswer::Corrupt),
        Value::Int(left) if *left > 0 => {
            Ok(RenewAnswer::Renewed { remaining: Duration::from_millis(left.unsigned_abs()) })
        }
        _ => Err(reply.not_understood()),
    };
    reply.0.iter().map(answer).collect()
}

pub(super) fn withdraw(value: Value) -> Result<WithdrawAnswer, StoreError> {
    let reply = Reply::new(value)?;
    match reply.word() {
        b"withdrawn" => Ok(WithdrawAnswer { ended_grant: reply.number(1)? == 1 }),
        _ => Err(reply.trouble()),
    }
}

pub(super) fn inspect(value: Value) -> Result<Inspection, StoreError> {
    let reply = Reply::new(value)?;
    match reply.word() {
        b"free" => Ok(Inspection::Free { last_fence: reply.text(1)?.parse().ok() }),
        b"held" => lease_record(&reply).map(Inspection::Held),
        _ => Err(reply.trouble()),
    }
}

fn lease_record(reply: &Reply) -> Result<LeaseRecord, StoreError> {
    let remaining = reply.millis(1)?;
    let server_micros: u64 = reply.parsed(2)?;
    let (mut id, mut holds): (Option<AcquisitionId>, u32) = (None, 0);
    let waiters = waiter_records(reply.0.get(3), server_micros);
    let mut fence: Option<FenceToken> = None;
    let (mut label, mut since, mut kept) = (String::new(), server_micros, false);
    for at in (4..reply.0.len()).step_by(2) {
        match reply.text(at)?.as_str() {
            "fence" => fence = Some(reply.parsed(at + 1)?),
            "label" => label = reply.text(at + 1)?,
            "since" => since = reply.parsed(at + 1)?,
            "kept" => kept = true,
            field => {
                // The only field that is named by an acquisition; newer versions may write others.
                if let Ok(found) = field.parse() {
                    (id, holds) = (Some(found), reply.parsed(at + 1)?);
                }
            }
        }
    }
    let (Some(id), Some(fence)) = (id, fence) else { return Err(reply.not_understood()) };
    let held_for = Duration::from_micros(server_micros.saturating_sub(since));
    let record = LeaseRecord::new(id, fence, holds, remaining, label, held_for, kept);
    Ok(record.waited_for_by(waiters.ok_or_else(|| reply.not_understood())?))
}

fn waiter_records(list: Option<&Value>, server_micros: u64) -> Option<Vec<WaiterRecord>> {
    let Some(Value::Array(parts)) = list else { return None };
    let record = |waiter: &[Value]| {
        let id = text(&waiter[0])?.parse().ok()?;
        let heard: u64 = text(&waiter[1])?.parse().ok()?;
        let silent_for = Duration::from_micros(server_micros.saturating_sub(heard));
        Some(WaiterRecord::new(id, text(&waiter[2])?, silent_for))
    };
    parts.chunks_exact(3).map(record).collect()
}

pub(super) fn force_release(value: Value) -> Result<ForceReleaseAnswer, StoreError> {
    let reply = Reply::new(value)?;
    match reply.word() {
        b"ended" => Ok(ForceReleaseAnswer::Ended { fence: reply.text(1)?.parse().ok() }),
        b"changed" => Ok(ForceReleaseAnswer::Changed),
        _ => Err(reply.trouble()),
    }
}

fn not_understood(answer: &str) -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        format!("the server's answer {answer} is not understood"),
        "use one version of Leasehold per namespace, and no proxy that rewrites scripts",
    )
}
