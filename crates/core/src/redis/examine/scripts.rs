use redis::Cmd;

use super::{asker::Asker, server::unanswered};
use crate::{
    redis::{
        call::ScriptCall,
        classify::{classify, classify_dial},
        cluster::is_elsewhere,
        command::LockCommand,
        preamble::Preamble,
        scripts,
        sending::evaluate,
    },
    store::StoreError,
    types::LockName,
};

/// Runs every kind of command once on the keys of a lock, by text and by digest, as the check at
/// connect does.
pub(super) async fn run(
    asker: &Asker,
    preamble: &Preamble,
    probe: &LockName,
    channel: &str,
) -> Result<(), StoreError> {
    let write = |to: &mut Cmd| {
        preamble.write_keys(to, probe);
        to.arg(channel);
    };
    let call = ScriptCall::new(&scripts::PREFLIGHT, LockCommand::KEYS, &write);
    let mut connection = asker.connection.clone();
    for call in [call.with_body(), call] {
        let answer = asker.in_time(evaluate(&mut connection, call, false, asker.patience)).await;
        match answer.map_err(|_| unanswered())?.map_err(|error| classify(&error)) {
            // The slot has moved meanwhile; the rights are checked before the slot.
            Err(error) if !is_elsewhere(&error) => return Err(error),
            _ => {}
        }
    }
    Ok(())
}

/// Subscribes to the messages about grants; the subscription ends with the connection.
pub(super) async fn subscribe(asker: &Asker, channel: &str) -> Result<(), StoreError> {
    let mut connection = asker.connection.clone();
    let answer = asker.in_time(connection.subscribe(channel)).await;
    answer.map_err(|_| unanswered())?.map_err(|error| classify_dial(&error))
}
