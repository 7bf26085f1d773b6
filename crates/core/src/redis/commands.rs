use redis::Cmd;

use super::{decode, script::Call, scripts, store::RedisStore};
use crate::{
    clock::Instant,
    memory::WITHDRAWAL_MARK,
    store::{
        Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer, Inspection,
        LockStore, Release, ReleaseAnswer, RenewAnswer, Renewal, StoreFuture, Withdraw,
        WithdrawAnswer,
    },
    words::{FenceToken, LockName},
};

/// Each command writes down its keys, then its arguments, in the order of the script's header.
impl LockStore for RedisStore {
    fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
        let Acquire { name, id, ttl, watermark, label, deadline } = command;
        Box::pin(async move {
            let write = |to: &mut Cmd| {
                to.arg(self.keys.lease(name)).arg(self.keys.counter(name));
                to.arg(self.keys.withdrawn(name, id));
                to.arg(id.to_text()).arg(ttl.as_millis());
                to.arg(watermark.map_or(0, FenceToken::get));
                to.arg(self.retention_millis()).arg(label.as_str());
            };
            let call = Call { script: &scripts::ACQUIRE, keys: 3, with_body: false, write: &write };
            self.run(name, call, deadline, decode::acquire).await
        })
    }

    fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
        let Hold { name, id, fence, update, ttl, deadline } = command;
        Box::pin(async move {
            let write = |to: &mut Cmd| {
                to.arg(self.keys.lease(name)).arg(id.to_text()).arg(fence.get());
                to.arg(update.count.get()).arg(update.number).arg(ttl.as_millis());
            };
            let call = Call { script: &scripts::HOLD, keys: 1, with_body: false, write: &write };
            self.run(name, call, deadline, decode::hold).await
        })
    }

    fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
        let Release { name, id, fence, deadline, .. } = command;
        Box::pin(async move {
            let keep = command.keep_in_range().map_or(0, millis);
            let write = |to: &mut Cmd| {
                to.arg(self.keys.lease(name)).arg(id.to_text()).arg(fence.get()).arg(keep);
            };
            let call = Call { script: &scripts::RELEASE, keys: 1, with_body: false, write: &write };
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
                for one in batch {
                    to.arg(self.keys.lease(&one.name));
                }
                for one in batch {
                    to.arg(one.id.to_text()).arg(one.fence.get()).arg(one.ttl.as_millis());
                }
            };
            let call = Call {
                script: &scripts::RENEW,
                keys: batch.len(),
                with_body: false,
                write: &write,
            };
            let answer = self.renewals.call(call, deadline).await;
            answer.and_then(|value| decode::renew(value, batch.len()))
        })
    }

    fn withdraw<'a>(&'a self, command: Withdraw<'a>) -> StoreFuture<'a, WithdrawAnswer> {
        let Withdraw { name, id, deadline } = command;
        Box::pin(async move {
            let write = |to: &mut Cmd| {
                to.arg(self.keys.lease(name)).arg(self.keys.withdrawn(name, id));
                to.arg(id.to_text()).arg(millis(WITHDRAWAL_MARK));
            };
            let call =
                Call { script: &scripts::WITHDRAW, keys: 2, with_body: false, write: &write };
            self.run(name, call, deadline, decode::withdraw).await
        })
    }

    fn inspect<'a>(&'a self, name: &'a LockName, deadline: Instant) -> StoreFuture<'a, Inspection> {
        Box::pin(async move {
            let write = |to: &mut Cmd| {
                to.arg(self.keys.lease(name)).arg(self.keys.counter(name));
            };
            let call = Call { script: &scripts::INSPECT, keys: 2, with_body: false, write: &write };
            self.run_apart(name, call, deadline, decode::inspect).await
        })
    }

    fn force_release<'a>(
        &'a self,
        command: ForceRelease<'a>,
    ) -> StoreFuture<'a, ForceReleaseAnswer> {
        let ForceRelease { name, id, fence, deadline } = command;
        Box::pin(async move {
            let message = format!("force-released {id} {fence} {name}");
            let write = |to: &mut Cmd| {
                to.arg(self.keys.lease(name)).arg(self.keys.counter(name));
                to.arg(id.to_text()).arg(fence.get()).arg(self.retention_millis());
                to.arg(self.keys.channel(id.runtime())).arg(&message);
            };
            let call =
                Call { script: &scripts::FORCE_RELEASE, keys: 2, with_body: false, write: &write };
            self.run_apart(name, call, deadline, decode::force_release).await
        })
    }
}

/// Milliseconds as scripts take them.
fn millis(duration: std::time::Duration) -> u64 {
    u64::try_from(duration.as_millis()).unwrap_or(u64::MAX)
}
