use redis::{Value, cmd};

use super::asker::Asker;
use crate::{
    diagnosis::facts::{NotRead, Reading},
    types::Replication,
};

/// How many replicas a master names in answer to `ROLE`: its name, its offset, and they.
pub(super) async fn role(asker: &Asker) -> Reading<usize> {
    match asker.ask(&cmd("ROLE")).await? {
        Value::Array(parts) => match parts.get(2) {
            Some(Value::Array(replicas)) => Ok(replicas.len()),
            _ => Err(NotRead::Strange),
        },
        _ => Err(NotRead::Strange),
    }
}

/// Whether acknowledgements may be waited for: here for those of no replica, which are there at
/// once.
pub(super) async fn acks(asker: &Asker, acks: Replication) -> Reading<()> {
    let mut command = cmd(if acks.on_disk() { "WAITAOF" } else { "WAIT" });
    if acks.on_disk() {
        command.arg(0);
    }
    asker.ask(command.arg(0).arg(1)).await.map(drop)
}
