use std::sync::{Weak, atomic::Ordering};

use redis::{Cmd, Value};

use super::{
    batcher::Batcher,
    command::Command,
    decode, heartbeat,
    lane::{Call, lane_number, millis},
    scripts,
    store::RedisStore,
};
use crate::{
    clock::Instant,
    store::{
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection,
        Listener, LockStore, Release, ReleaseAnswer, RenewAnswer, Renewal, StoreError, StoreFuture,
        Waiter, Withdraw, WithdrawAnswer,
    },
    types::{LockName, RuntimeId, RuntimeLabel},
};

/// Each command writes its keys, then its arguments, in the order of the script's header.
impl LockStore for RedisStore {
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        let sent = (Command::acquire(command), command.deadline);
        let decode = move |value| decode::acquire(value, command.ttl);
        Box::pin(self.run(command.name, sent, decode))
    }

    fn heartbeat<'a>(
        &'a self,
        batch: &'a [Waiter],
        label: &'a RuntimeLabel,
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<Result<AcquireAnswer, StoreError>>> {
        Box::pin(async move { Ok(heartbeat::heartbeat(self, batch, label, deadline).await) })
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        self.subscriptions.listen(runtime, self.preamble.keys.channel(runtime), listener);
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        let sent = (Command::hold(command), command.deadline);
        Box::pin(self.run(command.name, sent, decode::hold))
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        let sent = (Command::release(command), command.deadline);
        Box::pin(self.run(command.name, sent, decode::release))
    }

    fn renew<'a>(
        &'a self,
        batch: &'a [Renewal],
        deadline: Instant,
    ) -> StoreFuture<'a, Vec<RenewAnswer>> {
        Box::pin(async move {
            let write = |to: &mut Cmd| {
                // One text for all: these are very many.
                let mut text = String::new();
                for one in batch {
                    text.clear();
                    self.preamble.keys.write_lease(&mut text, &one.name);
                    to.arg(&*text);
                }
                self.preamble.write(to);
                for one in batch {
                    text.clear();
                    one.id.write_text(&mut text);
                    to.arg(&*text).arg(one.fence.get()).arg(millis(one.ttl.get()));
                }
            };
            let call = Call::new(&scripts::RENEW, batch.len(), &write);
            self.ready(deadline).await?;
            let answer = self.renewals.call(call, deadline).await;
            answer.and_then(|value| decode::renew(value, batch.len()))
        })
    }

    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer> {
        let sent = (Command::withdraw(command), command.deadline);
        Box::pin(self.run(command.name, sent, decode::withdraw))
    }

    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection> {
        Box::pin(async move {
            let write = |to: &mut Cmd| {
                self.preamble.write_keys(to, name);
                self.preamble.write(to);
            };
            let call = Call::new(&scripts::INSPECT, Command::KEYS, &write);
            self.run_apart(name, call, deadline, decode::inspect).await
        })
    }

    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer> {
        let ForceRelease { name, id, fence, deadline } = command;
        Box::pin(async move {
            let write = |to: &mut Cmd| {
                self.preamble.write_keys(to, name);
                self.preamble.write(to);
                to.arg(id.to_string()).arg(fence.get());
            };
            let call = Call::new(&scripts::FORCE_RELEASE, Command::KEYS, &write);
            self.run_apart(name, call, deadline, decode::force_release).await
        })
    }
}

impl RedisStore {
    /// The connection to which a name is pinned, so that its commands usually keep their order.
    pub(super) fn batcher(&self, name: &LockName) -> &Batcher {
        &self.commands[self.lane_number(name)]
    }

    pub(super) fn lane_number(&self, name: &LockName) -> usize {
        lane_number(name, self.commands.len())
    }

    /// Returns when the server has been checked, as [`Readiness::by`](super::readiness::Readiness::by).
    pub(super) async fn ready(&self, deadline: Instant) -> Result<(), StoreError> {
        if self.readiness.passed.load(Ordering::Acquire) {
            return Ok(());
        }
        // Boxed: otherwise the future of every command would have room for it.
        Box::pin(self.readiness.by(deadline)).await
    }

    /// Sends a command on the connection of its name.
    async fn run<T>(
        &self,
        name: &LockName,
        (command, deadline): (Command, Instant),
        decode: impl FnOnce(Value) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let answer = async {
            self.ready(deadline).await?;
            self.batcher(name).send(command, deadline).await
        };
        answer.await.and_then(decode).map_err(|error| error.for_lock(name))
    }

    /// Runs a script on a pooled connection, out of the way of leases.
    async fn run_apart<T>(
        &self,
        name: &LockName,
        call: Call<'_>,
        deadline: Instant,
        decode: impl FnOnce(Value) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let answer = async {
            self.ready(deadline).await?;
            self.pool.exchange(call, &*self.clock, deadline).await
        };
        answer.await.and_then(decode).map_err(|error| error.for_lock(name))
    }
}
