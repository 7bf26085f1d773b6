use std::collections::BTreeMap;

use futures_util::future::join_all;
use leasehold_core::{
    Instant, RuntimeLabel, StoreError,
    store::{AcquireAnswer, Heartbeats, Waiter},
};

use super::{
    acknowledge::Answered, batcher::MAX_COMMANDS, command::LockCommand, decode, store::RedisStore,
};

type Answers = Vec<Result<AcquireAnswer, StoreError>>;

impl RedisStore {
    /// Repeats the acquires of many waiters: a call for every 64 names of a connection, all at once. When a
    /// connection fails, only its own names fail.
    pub(super) async fn heartbeat(
        &self,
        Heartbeats { batch, label }: Heartbeats,
        deadline: Instant,
    ) -> Answers {
        let parts = parts(&batch, |waiter| self.connections.plain().number(&waiter.name));
        let calls = parts.iter().map(|part| self.heartbeat_call(part, &label, deadline));
        let by_part = join_all(calls).await;
        let mut answers: Vec<_> =
            parts.into_iter().flatten().zip(by_part.into_iter().flatten()).collect();
        answers.sort_by_key(|((at, _), _)| *at);
        answers.into_iter().map(|(_, answer)| answer).collect()
    }

    async fn heartbeat_call(
        &self,
        part: &[Numbered<'_>],
        label: &RuntimeLabel,
        deadline: Instant,
    ) -> Answers {
        let Some((_, first)) = part.first() else { return Vec::new() };
        let command =
            |(_, waiter): &Numbered<'_>| LockCommand::Heartbeat((*waiter).clone(), label.clone());
        let commands: Vec<_> = part.iter().map(command).collect();
        let answers = match self.ready(deadline).await {
            Ok(()) => {
                self.connections.plain().of_name(&first.name).deliver(&commands, deadline).await
            }
            Err(error) => part.iter().map(|_| Err(error.clone())).collect(),
        };
        let named = |(answer, (_, waiter)): (Result<Answered, StoreError>, &Numbered<'_>)| {
            answer
                .and_then(|value| decode::acquire(value.answer, waiter.ttl))
                .map_err(|error| error.for_ttl(waiter.ttl).for_lock(&waiter.name))
        };
        answers.into_iter().zip(part).map(named).collect()
    }
}

type Numbered<'a> = (usize, &'a Waiter);

/// Splits a batch by connections, and into parts that one call may carry.
fn parts(batch: &[Waiter], number: impl Fn(&Waiter) -> usize) -> Vec<Vec<Numbered<'_>>> {
    let mut by_connection = BTreeMap::<usize, Vec<Numbered<'_>>>::new();
    for (at, waiter) in batch.iter().enumerate() {
        by_connection.entry(number(waiter)).or_default().push((at, waiter));
    }
    by_connection
        .values()
        .flat_map(|of_one| of_one.chunks(MAX_COMMANDS).map(<[_]>::to_vec))
        .collect()
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use leasehold_core::{AcquisitionId, LockName, RuntimeId, Ttl, store::Heartbeat};
    use uuid::Uuid;

    use super::*;

    fn waiter(number: u64) -> Waiter {
        Waiter {
            name: LockName::new(number.to_string()).unwrap(),
            id: AcquisitionId::new(RuntimeId::new(Uuid::nil()), number),
            ttl: Ttl::default(),
            watermark: None,
            keeps: false,
            heartbeat: Heartbeat { number: 1, claim_window: Duration::from_secs(3) },
        }
    }

    #[test]
    fn a_batch_is_split_by_connections_and_size() {
        let batch: Vec<_> = (0..300).map(waiter).collect();
        let parts = parts(&batch, |waiter| usize::from(waiter.id.number() < 10));
        let sizes: Vec<_> = parts.iter().map(Vec::len).collect();
        assert_eq!(sizes, [MAX_COMMANDS, MAX_COMMANDS, MAX_COMMANDS, MAX_COMMANDS, 34, 10]);
        let mut all: Vec<_> = parts.iter().flatten().map(|(at, _)| *at).collect();
        all.sort_unstable();
        assert!(all.into_iter().eq(0..300));
    }
}
