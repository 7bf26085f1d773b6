use std::sync::{Weak, atomic::Ordering};

use redis::{Cmd, Value};

use super::{
    decode, heartbeat,
    lane::{Call, Lane, lane_number, millis, watermark},
    scripts,
    store::RedisStore,
};
use crate::{
    clock::Instant,
    store::{
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection,
        Listener, LockStore, Release, ReleaseAnswer, RenewAnswer, Renewal, StoreError, StoreFuture,
        WITHDRAWAL_MARK, Waiter, Withdraw, WithdrawAnswer,
    },
    types::{LockName, RuntimeId, RuntimeLabel},
};

/// Each command writes its keys, then its arguments, in the order of the script's header.
impl LockStore for RedisStore {
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        let Acquire { name, id, ttl, label, wait, deadline, .. } = command;
        Box::pin(async move {
            let write = |to: &mut Cmd| {
                self.write_keys(to, name);
                to.arg(self.keys.withdrawn(name, id));
                to.arg(id.to_text()).arg(ttl.as_millis()).arg(watermark(command.watermark));
                to.arg(self.retention_millis()).arg(label.as_str());
                to.arg(self.keys.channels()).arg(name.as_str());
                if let Some(heartbeat) = wait {
                    to.arg(heartbeat.number).arg(millis(heartbeat.window(ttl)));
                }
            };
            let call = Call::new(&scripts::ACQUIRE, 5, &write);
            self.run(name, call, deadline, decode::acquire).await
        })
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
        self.subscriptions.listen(runtime, self.keys.channel(runtime), listener);
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        let Hold { name, id, fence, update, ttl, deadline } = command;
        Box::pin(async move {
            let write = |to: &mut Cmd| {
                to.arg(self.keys.lease(name)).arg(id.to_text()).arg(fence.get());
                to.arg(update.count.get()).arg(update.number).arg(ttl.as_millis());
            };
            let call = Call::new(&scripts::HOLD, 1, &write);
            self.run(name, call, deadline, decode::hold).await
        })
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        let Release { name, id, fence, deadline, .. } = command;
        Box::pin(async move {
            let keep = command.keep_in_range().map_or(0, millis);
            let next = command.next.filter(|_| keep == 0);
            let write = |to: &mut Cmd| {
                self.write_keys(to, name);
                if let Some(next) = next {
                    to.arg(self.keys.withdrawn(name, next.id));
                }
                to.arg(id.to_text()).arg(fence.get()).arg(keep).arg(self.retention_millis());
                to.arg(self.keys.channels()).arg(name.as_str());
                if let Some(next) = next {
                    to.arg(next.id.to_text()).arg(next.ttl.as_millis());
                    to.arg(watermark(next.watermark)).arg(next.label.as_str());
                    to.arg(next.heartbeat.number).arg(millis(next.heartbeat.window(next.ttl)));
                }
            };
            let keys = if next.is_some() { 5 } else { 4 };
            let call = Call::new(&scripts::RELEASE, keys, &write).once();
            self.run(name, call, deadline, decode::release).await
        })
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
                    self.keys.write_lease(&mut text, &one.name);
                    to.arg(&*text);
                }
                for one in batch {
                    text.clear();
                    one.id.write_text(&mut text);
                    to.arg(&*text).arg(one.fence.get()).arg(one.ttl.as_millis());
                }
            };
            let call = Call::new(&scripts::RENEW, batch.len(), &write);
            self.checked(deadline).await?;
            let answer = self.renewals.call(call, deadline).await;
            answer.and_then(|value| decode::renew(value, batch.len()))
        })
    }

    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer> {
        let Withdraw { name, id, deadline } = command;
        Box::pin(async move {
            let write = |to: &mut Cmd| {
                self.write_keys(to, name);
                to.arg(self.keys.withdrawn(name, id));
                to.arg(id.to_text()).arg(millis(WITHDRAWAL_MARK)).arg(self.retention_millis());
                to.arg(self.keys.channels()).arg(name.as_str());
            };
            let call = Call::new(&scripts::WITHDRAW, 5, &write);
            self.run(name, call, deadline, decode::withdraw).await
        })
    }

    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection> {
        Box::pin(async move {
            let write = |to: &mut Cmd| self.write_keys(to, name);
            let call = Call::new(&scripts::INSPECT, 4, &write);
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
                self.write_keys(to, name);
                to.arg(id.to_text()).arg(fence.get()).arg(self.retention_millis());
                to.arg(self.keys.channels()).arg(name.as_str());
            };
            let call = Call::new(&scripts::FORCE_RELEASE, 4, &write);
            self.run_apart(name, call, deadline, decode::force_release).await
        })
    }
}

impl RedisStore {
    /// The lane to which a name is pinned, so that its commands do not overtake each other.
    pub(super) fn lane(&self, name: &LockName) -> &Lane {
        &self.commands[self.lane_number(name)]
    }

    pub(super) fn lane_number(&self, name: &LockName) -> usize {
        lane_number(name, self.commands.len())
    }

    /// Writes the first four keys of every script that may grant a name.
    pub(super) fn write_keys(&self, to: &mut Cmd, name: &LockName) {
        to.arg(self.keys.lease(name)).arg(self.keys.counter(name));
        to.arg(self.keys.queue(name)).arg(self.keys.waiters(name));
    }

    /// Waits for the check of the server, if it has not passed yet.
    pub(super) async fn checked(&self, deadline: Instant) -> Result<(), StoreError> {
        if self.check_passed.load(Ordering::Acquire) {
            return Ok(());
        }
        self.readiness.by(deadline).await
    }

    /// Runs a script on the lane of a name.
    async fn run<T>(
        &self,
        name: &LockName,
        call: Call<'_>,
        deadline: Instant,
        decode: impl FnOnce(Value) -> Result<T, StoreError>,
    ) -> Result<T, StoreError> {
        let answer = async {
            self.checked(deadline).await?;
            self.lane(name).call(call, deadline).await
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
            self.checked(deadline).await?;
            self.pool.exchange(call, &*self.clock, deadline).await
        };
        answer.await.and_then(decode).map_err(|error| error.for_lock(name))
    }

    pub(super) fn retention_millis(&self) -> u64 {
        self.fencing.retention_millis()
    }
}
