//! What a wait for replicas or disks behind a script has counted.
//!
//! `WAIT` counts the copies of the last write of its own connection. From Redis 7.2 on, a command
//! that writes nothing does not move that mark, so a script before it has to write in any case, see
//! `touch.lua`.

use leasehold_core::{Replication, StoreError, StoreErrorKind};
use redis::Value;

use super::{classify::classify, needed::needed};

/// The answer to a script, and what the wait behind it counted; `None` where there was none.
#[derive(Debug, Clone)]
pub struct Answered {
    /// The answer to the script.
    pub answer: Value,
    pub(super) counted: Option<Value>,
}

/// Fails unless what was asked for has been acknowledged, by what a wait has counted.
///
/// # Errors
///
/// [`StoreError`] of kind `Indeterminate` that [is unacknowledged](StoreError::is_unacknowledged)
/// where it was too little, of kind `Config` where the server cannot wait.
pub fn acknowledged(asked: Replication, counted: Option<&Value>) -> Result<(), StoreError> {
    if !asked.are_asked() {
        return Ok(());
    }
    let missing = |had: &str| Err(StoreError::unacknowledged(asked, had));
    let (on_disk, replicas) = match counted {
        Some(Value::Int(replicas)) if !asked.on_disk() => (true, *replicas),
        Some(Value::Array(both)) => match both[..] {
            [Value::Int(disk), Value::Int(replicas)] => (disk > 0, replicas),
            _ => return missing("an unknown number"),
        },
        Some(Value::ServerError(error)) => {
            let refused = classify(&error.clone().into());
            if refused.kind() == StoreErrorKind::Config {
                return Err(refused.not_acknowledged());
            }
            return missing(&format!("none ({})", refused.what()));
        }
        _ => return missing("an unknown number"),
    };
    if !on_disk {
        return missing("not even the master's disk");
    }
    if replicas < i64::from(asked.replicas()) {
        return missing(&format!("only {replicas}"));
    }
    Ok(())
}

/// The refusal of a wait that the server will never make: a right is missing, or the command is.
pub(super) fn refused(asked: Replication, answered: &Answered) -> Result<(), StoreError> {
    let Some(Value::ServerError(error)) = &answered.counted else { return Ok(()) };
    let refused = needed(verb(asked), classify(&error.clone().into()));
    if refused.kind() == StoreErrorKind::Config { Err(refused) } else { Ok(()) }
}

/// The command that waits.
pub(super) fn verb(asked: Replication) -> &'static str {
    if asked.on_disk() { "WAITAOF" } else { "WAIT" }
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    const TIMEOUT: Duration = Duration::from_millis(100);

    fn in_memory(replicas: u8) -> Replication {
        Replication::wait(replicas, TIMEOUT).unwrap()
    }

    fn on_disk(replicas: u8) -> Replication {
        Replication::wait_aof(replicas, TIMEOUT).unwrap()
    }

    fn both(disk: i64, replicas: i64) -> Value {
        Value::Array(vec![Value::Int(disk), Value::Int(replicas)])
    }

    #[test]
    fn enough_is_as_much_as_was_asked_for() {
        for (asked, counted) in [
            (Replication::NONE, None),
            (in_memory(1), Some(Value::Int(1))),
            (in_memory(1), Some(Value::Int(3))),
            (on_disk(0), Some(both(1, 0))),
            (on_disk(2), Some(both(1, 2))),
        ] {
            assert_eq!(acknowledged(asked, counted.as_ref()), Ok(()), "{asked:?}");
        }
    }

    #[test]
    fn too_few_is_told_unacknowledged_by_any() {
        for (asked, counted) in [
            (in_memory(1), None),
            (in_memory(1), Some(Value::Nil)),
            (in_memory(1), Some(Value::Int(0))),
            (in_memory(2), Some(Value::Int(1))),
            // The answer to another question.
            (on_disk(1), Some(Value::Int(3))),
            (on_disk(0), Some(both(0, 0))),
            (on_disk(1), Some(both(1, 0))),
            (on_disk(1), Some(both(0, 1))),
        ] {
            let error = acknowledged(asked, counted.as_ref()).unwrap_err();
            assert!(error.is_unacknowledged() && error.is_answer(), "{asked:?}: {error}");
            assert_eq!(error.kind(), StoreErrorKind::Indeterminate);
        }
    }
}
