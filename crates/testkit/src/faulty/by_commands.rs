/// Sends a command and unwraps the answer, which is of the same kind.
macro_rules! send_as {
    ($store:expr, $kind:ident, $command:expr, $deadline:expr) => {
        Box::pin(async move {
            match $store.send($command, $deadline).await? {
                $crate::faulty::Answer::$kind(answer) => Ok(answer),
                other => unreachable!("{other:?} is of another kind than its command"),
            }
        })
    };
}

/// Makes a [`LockStore`](leasehold_core::LockStore) of a type that sends owned commands, by
/// `async fn send(&self, Command, Instant) -> Result<Answer, StoreError>`, and listens by
/// `fn hear(&self, RuntimeId, Weak<dyn Listener>)`. If it names one of its fields, that says in which
/// part a name lives.
macro_rules! lock_store_by_commands {
    ($store:ty $(, shards of $behind:ident)?) => {
        const _: () = {
            use std::sync::Weak;

            use leasehold_core::{
                Instant, LockName, LockStore, RuntimeId, RuntimeLabel, StoreError,
                store::{
                    Acquire, AcquireAnswer, ForceRelease, ForceReleaseAnswer, Hold, HoldAnswer,
                    Inspection, Listener, Release, ReleaseAnswer, RenewAnswer, Renewal, Scan,
                    ScanPage, StoreFuture, Waiter, Withdraw, WithdrawAnswer,
                },
            };

            use $crate::faulty::{Command, OwnedNext, by_commands::send_as};

            impl LockStore for $store {
                fn acquire<'a>(&'a self, command: Acquire<'a>) -> StoreFuture<'a, AcquireAnswer> {
                    let Acquire { id, ttl, watermark, keeps, wait, acks, deadline, .. } = command;
                    let (name, label) = (command.name.clone(), command.label.clone());
                    let command = Command::Acquire { name, id, ttl, watermark, label, keeps, wait, acks };
                    send_as!(self, Acquire, command, deadline)
                }

                fn heartbeat<'a>(
                    &'a self,
                    batch: &'a [Waiter],
                    label: &'a RuntimeLabel,
                    deadline: Instant,
                ) -> StoreFuture<'a, Vec<Result<AcquireAnswer, StoreError>>> {
                    let (batch, label) = (batch.to_vec(), label.clone());
                    send_as!(self, Heartbeat, Command::Heartbeat { batch, label }, deadline)
                }

                fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
                    self.hear(runtime, listener);
                }

                fn hold<'a>(&'a self, command: Hold<'a>) -> StoreFuture<'a, HoldAnswer> {
                    let Hold { name, id, fence, update, ttl, acks, deadline } = command;
                    let name = name.clone();
                    send_as!(self, Hold, Command::Hold { name, id, fence, update, ttl, acks }, deadline)
                }

                fn release<'a>(&'a self, command: Release<'a>) -> StoreFuture<'a, ReleaseAnswer> {
                    let Release { name, id, fence, keep, next, deadline } = command;
                    let (name, next) = (name.clone(), next.map(OwnedNext::from));
                    send_as!(
                        self,
                        Release,
                        Command::Release { name, id, fence, keep, next },
                        deadline
                    )
                }

                fn renew<'a>(
                    &'a self,
                    batch: &'a [Renewal],
                    deadline: Instant,
                ) -> StoreFuture<'a, Vec<Result<RenewAnswer, StoreError>>> {
                    send_as!(self, Renew, Command::Renew { batch: batch.to_vec() }, deadline)
                }

                fn withdraw<'a>(
                    &'a self,
                    command: Withdraw<'a>,
                ) -> StoreFuture<'a, WithdrawAnswer> {
                    let Withdraw { name, id, deadline } = command;
                    let name = name.clone();
                    send_as!(self, Withdraw, Command::Withdraw { name, id }, deadline)
                }

                fn inspect<'a>(
                    &'a self,
                    name: &'a LockName,
                    deadline: Instant,
                ) -> StoreFuture<'a, Inspection> {
                    send_as!(self, Inspect, Command::Inspect { name: name.clone() }, deadline)
                }

                fn scan<'a>(&'a self, command: Scan<'a>) -> StoreFuture<'a, ScanPage> {
                    let Scan { pattern, cursor, deadline } = command;
                    let (pattern, cursor) = (pattern.clone(), cursor.clone());
                    send_as!(self, Scan, Command::Scan { pattern, cursor }, deadline)
                }

                fn force_release<'a>(
                    &'a self,
                    command: ForceRelease<'a>,
                ) -> StoreFuture<'a, ForceReleaseAnswer> {
                    let ForceRelease { name, id, fence, deadline } = command;
                    let name = name.clone();
                    send_as!(
                        self,
                        ForceRelease,
                        Command::ForceRelease { name, id, fence },
                        deadline
                    )
                }

                $(fn shard(&self, name: &LockName) -> usize {
                    self.$behind.shard(name)
                })?
            }
        };
    };
}

pub(crate) use {lock_store_by_commands, send_as};
