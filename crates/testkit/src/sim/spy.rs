use std::{
    collections::{BTreeMap, BTreeSet},
    sync::{Arc, Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use leasehold_core::{
    AcquisitionId, Fence, Instant, LockName, RuntimeId, StoreError,
    store::{
        Acquire, AcquireAnswer, Command, ForceRelease, ForceReleaseAnswer, Granted, Heartbeat,
        Heartbeats, Hold, HoldAnswer, Inspect, Next, Push, Release, ReleaseAnswer, RenewAnswer,
        Renewals, Reply, Scan, Withdraw,
    },
};

use crate::history::{Deed, Event, History};

/// Reads what runtimes and the server tell each other, into one history per name.
#[derive(Debug, Clone, Default)]
pub struct Spy {
    book: Arc<Mutex<Book>>,
}

#[derive(Debug, Default)]
struct Book {
    histories: BTreeMap<LockName, History>,
    minted: BTreeSet<(LockName, AcquisitionId, Fence)>,
    kept: BTreeSet<(LockName, AcquisitionId, Fence)>,
    released: BTreeSet<(LockName, AcquisitionId, Fence)>,
}

impl Spy {
    /// The history of a name.
    pub fn history(&self, name: &LockName) -> History {
        self.book().histories.entry(name.clone()).or_default().clone()
    }

    /// All histories, by name.
    pub fn histories(&self) -> Vec<(LockName, History)> {
        let book = self.book();
        book.histories.iter().map(|(name, history)| (name.clone(), history.clone())).collect()
    }

    /// Something happened to all names.
    pub(super) fn everywhere(&self, at: Instant, deed: Deed) {
        for (_, history) in self.histories() {
            history.record(Event::Spied { at, deed });
        }
    }

    /// Something happened to a name.
    pub(super) fn about(&self, at: Instant, name: &LockName, deed: Deed) {
        self.tell(at, name, deed);
    }

    /// A runtime sends a command.
    pub(super) fn sent(&self, at: Instant, command: &Command) {
        match command {
            Command::Acquire(Acquire { name, id, .. }) => {
                self.tell(at, name, Deed::AskSent { id: *id });
            }
            Command::Heartbeat(Heartbeats { batch, .. }) => {
                for waiter in batch {
                    self.tell(at, &waiter.name, Deed::AskSent { id: waiter.id });
                }
            }
            Command::Release(Release { name, id, fence, next, .. }) => {
                self.tell(at, name, Deed::ReleaseSent { id: *id, first: *fence });
                let is_new = self.book().released.insert((name.clone(), *id, *fence));
                // A repeat asks for nothing: where the turn has ended, it changes nothing.
                if let Some(next) = next.as_ref().filter(|_| is_new) {
                    self.tell(at, name, Deed::AskSent { id: next.id });
                }
            }
            Command::Renew(Renewals { batch }) => {
                for one in batch {
                    let deed = Deed::RenewalSent { id: one.id, first: one.fence };
                    self.tell(at, &one.name, deed);
                }
            }
            Command::Withdraw(Withdraw { name, id }) => {
                self.tell(at, name, Deed::WithdrawSent { id: *id });
            }
            Command::Hold(Hold { .. })
            | Command::Inspect(Inspect { .. })
            | Command::Scan(Scan { .. })
            | Command::ForceRelease(ForceRelease { .. }) => {}
        }
    }

    /// The server executed a command, and made pushes of it.
    pub(super) fn executed(
        &self,
        at: Instant,
        command: &Command,
        answer: &Result<Reply, StoreError>,
        pushes: &[(usize, Push)],
    ) {
        if let Ok(answer) = answer {
            self.answered(at, command, answer, !pushes.is_empty());
        }
        for (_, push) in pushes {
            match push {
                Push::Granted { name, id, granted, .. } => {
                    self.minted(at, name, *id, granted);
                }
                Push::Wanted { name, fence, .. } => {
                    self.tell(at, name, Deed::Wanted { first: *fence });
                }
                Push::ForceReleased { .. }
                | Push::Unexpected
                | Push::Unreadable
                | Push::Listening => {}
            }
        }
    }

    /// A server that is a master no more executed a command. `knew` is whether a runtime had found
    /// its successor, and `counts` whether replicas had to acknowledge what it granted.
    pub(super) fn executed_aside(
        &self,
        at: Instant,
        (command, answer): (&Command, &Result<Reply, StoreError>),
        pushes: &[(usize, Push)],
        counts: bool,
        knew: impl Fn(RuntimeId) -> bool,
    ) {
        let mut told: Vec<(&LockName, AcquisitionId, &Granted)> = Vec::new();
        match (command, answer) {
            (
                Command::Acquire(Acquire { name, id, .. }),
                Ok(Reply::Acquire(AcquireAnswer::Granted(granted))),
            ) => told.push((name, *id, granted)),
            (Command::Heartbeat(Heartbeats { batch, .. }), Ok(Reply::Heartbeat(answers))) => {
                for (waiter, answer) in batch.iter().zip(answers) {
                    if let Ok(AcquireAnswer::Granted(granted)) = answer {
                        told.push((&waiter.name, waiter.id, granted));
                    }
                }
            }
            (
                Command::Release(Release { name, next: Some(next), .. }),
                Ok(Reply::Release(ReleaseAnswer::NextGranted(granted))),
            ) => told.push((name, next.id, granted)),
            _ => {}
        }
        for (_, push) in pushes {
            if let Push::Granted { name, id, granted, .. } = push {
                told.push((name, *id, granted));
            }
        }
        for (name, id, Granted { first, last, .. }) in told {
            if self.book().minted.insert((name.clone(), id, *first)) {
                let is_void = !counts && !knew(id.runtime());
                let (first, last) = (*first, *last);
                self.tell(at, name, Deed::MintedAside { id, first, last, is_void });
            }
        }
    }

    fn answered(&self, at: Instant, command: &Command, answer: &Reply, granted_others: bool) {
        match (command, answer) {
            (Command::Acquire(Acquire { name, id, ttl, wait, .. }), Reply::Acquire(answer)) => {
                self.asked(at, name, *id, ttl.get(), *wait, answer);
            }
            (Command::Heartbeat(Heartbeats { batch, .. }), Reply::Heartbeat(answers)) => {
                for (waiter, answer) in batch.iter().zip(answers) {
                    let (ttl, wait) = (waiter.ttl.get(), Some(waiter.heartbeat));
                    if let Ok(answer) = answer {
                        self.asked(at, &waiter.name, waiter.id, ttl, wait, answer);
                    }
                }
            }
            (Command::Release(Release { name, id, fence, next, .. }), Reply::Release(answer)) => {
                // Only a release that ended something grants anything to others.
                if granted_others || *answer == ReleaseAnswer::Released {
                    self.tell(at, name, Deed::Ended { id: *id, first: *fence });
                }
                if let ReleaseAnswer::Kept { remaining } = answer {
                    let (id, first, until) = (*id, *fence, at + *remaining);
                    if self.book().kept.insert((name.clone(), id, first)) {
                        self.tell(at, name, Deed::Kept { id, first, until });
                    }
                }
                if let Some(next) = next {
                    if granted_others {
                        self.tell(at, name, Deed::Superseded { by: next.id });
                    }
                    self.ended(at, name, next, answer);
                }
            }
            (Command::Renew(Renewals { batch }), Reply::Renew(answers)) => {
                for (one, answer) in batch.iter().zip(answers) {
                    if let Ok(RenewAnswer::Renewed { .. }) = answer {
                        let deed = Deed::Extended { id: one.id, first: one.fence };
                        self.tell(at, &one.name, deed);
                    }
                }
            }
            (Command::Hold(Hold { name, id, fence, .. }), Reply::Hold(HoldAnswer::Held { .. })) => {
                self.tell(at, name, Deed::Extended { id: *id, first: *fence });
            }
            (Command::Withdraw(Withdraw { name, id }), _) => {
                self.tell(at, name, Deed::Withdrawn { id: *id });
            }
            (
                Command::ForceRelease(ForceRelease { name, fence, .. }),
                Reply::ForceRelease(ForceReleaseAnswer::Ended { .. }),
            ) => self.tell(at, name, Deed::Forced { first: *fence }),
            _ => {}
        }
    }

    fn ended(&self, at: Instant, name: &LockName, next: &Next, answer: &ReleaseAnswer) {
        match answer {
            ReleaseAnswer::NextGranted(granted) => {
                self.minted(at, name, next.id, granted);
            }
            ReleaseAnswer::NextQueued(_) => {
                let live_until = at + next.heartbeat.claim_window.min(next.ttl.get());
                self.tell(at, name, Deed::Queued { id: next.id, live_until, refreshed: false });
            }
            _ => {}
        }
    }

    fn asked(
        &self,
        at: Instant,
        name: &LockName,
        id: AcquisitionId,
        ttl: Duration,
        wait: Option<Heartbeat>,
        answer: &AcquireAnswer,
    ) {
        match (answer, wait) {
            // A repeat removes older places of its runtime.
            (AcquireAnswer::Granted(granted), _) if !self.minted(at, name, id, granted) => {
                self.tell(at, name, Deed::Superseded { by: id });
            }
            (AcquireAnswer::Queued(_), Some(heartbeat)) => {
                let live_until = at + heartbeat.claim_window.min(ttl);
                self.tell(at, name, Deed::Queued { id, live_until, refreshed: true });
            }
            _ => {}
        }
    }

    /// A grant was told, for the first time if it was made now; whether it was.
    fn minted(&self, at: Instant, name: &LockName, id: AcquisitionId, granted: &Granted) -> bool {
        let (first, last) = (granted.first, granted.last);
        let is_new = self.book().minted.insert((name.clone(), id, first));
        if is_new {
            self.tell(at, name, Deed::Minted { id, first, last });
        }
        is_new
    }

    fn tell(&self, at: Instant, name: &LockName, deed: Deed) {
        self.history(name).record(Event::Spied { at, deed });
    }

    fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }
}
