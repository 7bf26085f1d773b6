use std::{
    sync::{Arc, Mutex, MutexGuard, PoisonError, Weak},
    vec,
};

use futures_util::future::join_all;
use leasehold_core::{
    Clock, Instant, LockName, LockStore, NamePattern, RuntimeId, RuntimeLabel, StoreError,
    store::{
        AcquireAnswer, Command, Heartbeats, Inspect, Listener, Renewal, Renewals, Reply, Scan,
        ScanCursor, ScanPage, StoreFuture, Waiter,
    },
};
use leasehold_redis::{seam::RedirectPolicy, slot_of_lock};

use super::{
    network::{Lane, Ticket, Wire},
    route::Router,
    servers::{Layout, node_at},
};
use crate::{ManualClock, faulty::CommandFacts};

/// A process's store: the servers at the other end of a network that the world rules.
#[derive(Debug, Clone)]
pub struct Line {
    wire: Arc<Mutex<Wire>>,
    process: usize,
    clock: ManualClock,
    layout: Layout,
    router: Arc<Router>,
    announce: Announce,
}

impl LockStore for Line {
    fn send(&self, command: Command, deadline: Instant) -> StoreFuture<'_, Reply> {
        Box::pin(self.send_parts(command, deadline))
    }

    fn listen(&self, runtime: RuntimeId, listener: Weak<dyn Listener>) {
        (self.announce.0)(runtime);
        self.wire().listen(self.process, listener);
    }

    fn shard(&self, name: &LockName) -> usize {
        self.router.shard(name)
    }
}

/// Tells the world which runtime a process has.
#[derive(Clone)]
struct Announce(Arc<dyn Fn(RuntimeId) + Send + Sync>);

impl std::fmt::Debug for Announce {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str("Announce")
    }
}

impl Line {
    pub(super) fn new(
        wire: Arc<Mutex<Wire>>,
        process: usize,
        clock: ManualClock,
        layout: Layout,
        router: Arc<Router>,
        announce: impl Fn(RuntimeId) + Send + Sync + 'static,
    ) -> Self {
        let announce = Announce(Arc::new(announce));
        Self { wire, process, clock, layout, router, announce }
    }

    /// Sends a command when it is first polled, and waits for its outcome until its deadline. In a
    /// Cluster, a batch is sent as one command for each name. Elsewhere, heartbeats are sent as one for
    /// each connection, and other batches as one.
    async fn send_parts(&self, command: Command, deadline: Instant) -> Result<Reply, StoreError> {
        // Where a connection has to be made first, the command leaves later.
        self.wire().decided(&command);
        let is_cluster = matches!(self.layout, Layout::Cluster { .. });
        match command {
            Command::Heartbeat(Heartbeats { batch, label }) => {
                let part = |waiter: &Waiter| match self.layout {
                    // Whatever differs from name to name.
                    Layout::Cluster { .. } => usize::from(slot_of_lock(&waiter.name)),
                    _ => Lane::of_name(&waiter.name),
                };
                self.send_heartbeats(&batch, &label, part, deadline).await
            }
            Command::Renew(Renewals { batch }) if is_cluster => {
                self.send_renewals(batch, deadline).await
            }
            Command::Inspect(Inspect { names }) if is_cluster => {
                self.send_looks(names, deadline).await
            }
            Command::Scan(Scan { pattern, cursor }) if is_cluster => {
                self.scan_next(pattern, cursor, deadline).await
            }
            command => self.send_one(command, deadline).await,
        }
    }

    async fn send_one(&self, command: Command, deadline: Instant) -> Result<Reply, StoreError> {
        match self.layout {
            Layout::One => {
                let ticket = self.send_now(0, command, false, deadline);
                self.outcome(&ticket, deadline).await
            }
            Layout::Group { .. } => self.send_to_master(command, deadline).await,
            Layout::Cluster { .. } => self.send_to_owner(command, deadline).await,
        }
    }

    async fn send_to_master(
        &self,
        command: Command,
        deadline: Instant,
    ) -> Result<Reply, StoreError> {
        let number = Lane::of_command(&command);
        let _turn = if command.acks().are_asked() {
            Some(self.router.turn(number, deadline).await?)
        } else {
            None
        };
        let (lane, epoch) = self.router.reach(number, deadline).await?;
        let ticket = self.send_now(lane.node, command, false, deadline);
        let outcome = tokio::select! {
            biased;
            outcome = self.outcome(&ticket, deadline) => outcome,
            // The old master may hang, and its answer would say nothing about the new one.
            () = self.router.left(epoch) => Err(self.wire().left(&ticket)),
        };
        let is_readonly = |error: &StoreError| error.what().contains("READONLY");
        if outcome.as_ref().is_err_and(is_readonly) {
            self.router.refused(ticket.lane);
        }
        outcome
    }

    async fn send_to_owner(
        &self,
        command: Command,
        deadline: Instant,
    ) -> Result<Reply, StoreError> {
        let names = command.names();
        let name = names.first().expect("a command in a Cluster is about one lock");
        let mut course = RedirectPolicy::new(slot_of_lock(name));
        loop {
            let (node, is_asking) = match course.ask() {
                Some(place) => (node_at(&place), true),
                None => (self.router.owner(course.slot(), deadline).await?, false),
            };
            let ticket = self.send_now(node, command.clone(), is_asking, deadline);
            let error = match self.outcome(&ticket, deadline).await {
                Err(error) => error,
                answer => return answer,
            };
            if !self.router.redirected(&mut course, node, &error) {
                return Err(error);
            }
            if let Some(pause) = course.pause(self.router.fraction()) {
                let until = self.clock.now() + pause;
                if until >= deadline {
                    return Err(error);
                }
                self.clock.sleep_until(until).await;
            }
        }
    }

    fn send_now(
        &self,
        node: usize,
        command: Command,
        is_asking: bool,
        deadline: Instant,
    ) -> Ticket {
        let patience = deadline.saturating_since(self.clock.now());
        self.wire().send(self.process, node, command, is_asking, patience)
    }

    async fn outcome(&self, ticket: &Ticket, deadline: Instant) -> Result<Reply, StoreError> {
        tokio::select! {
            biased;
            outcome = ticket.slot.taken() => outcome,
            () = self.clock.sleep_until(deadline) => Err(self.wire().time_out(ticket)),
        }
    }

    async fn send_heartbeats(
        &self,
        batch: &[Waiter],
        label: &RuntimeLabel,
        part: impl Fn(&Waiter) -> usize,
        deadline: Instant,
    ) -> Result<Reply, StoreError> {
        let mut parts: Vec<usize> = batch.iter().map(&part).collect();
        parts.sort_unstable();
        parts.dedup();
        let beat = |number: &usize| {
            let here = |waiter: &&Waiter| part(waiter) == *number;
            let batch: Vec<_> = batch.iter().filter(here).cloned().collect();
            self.send_one(Command::Heartbeat(Heartbeats { batch, label: label.clone() }), deadline)
        };
        let answers = join_all(parts.iter().map(beat)).await;
        let mut answers: Vec<_> =
            answers.into_iter().map(|answer| answer.map(answers_of)).collect();
        let answer_of = |waiter: &Waiter| {
            let at = parts.binary_search(&part(waiter)).expect("every waiter was sent");
            match &mut answers[at] {
                Ok(answers) => answers.next().expect("there is one answer for each waiter"),
                Err(error) => Err(error.clone()),
            }
        };
        Ok(Reply::Heartbeat(batch.iter().map(answer_of).collect()))
    }

    async fn send_renewals(
        &self,
        batch: Vec<Renewal>,
        deadline: Instant,
    ) -> Result<Reply, StoreError> {
        let renew = |one: Renewal| async move {
            match self.send_one(Command::Renew(Renewals { batch: vec![one] }), deadline).await? {
                Reply::Renew(mut answers) => answers.remove(0),
                other => unreachable!("{other:?} is of another kind than its command"),
            }
        };
        Ok(Reply::Renew(join_all(batch.into_iter().map(renew)).await))
    }

    async fn send_looks(
        &self,
        names: Vec<LockName>,
        deadline: Instant,
    ) -> Result<Reply, StoreError> {
        let mut seen = Vec::with_capacity(names.len());
        for name in names {
            let look = Command::Inspect(Inspect { names: vec![name] });
            seen.push(match self.send_one(look, deadline).await {
                Ok(Reply::Inspect(mut seen)) => seen.remove(0),
                Ok(other) => unreachable!("{other:?} is of another kind than its command"),
                Err(error) => Err(error),
            });
        }
        Ok(Reply::Inspect(seen))
    }

    /// Asks one master after the other, as a [`ClusterStore`](leasehold_redis::ClusterStore) does.
    async fn scan_next(
        &self,
        pattern: NamePattern,
        cursor: ScanCursor,
        deadline: Instant,
    ) -> Result<Reply, StoreError> {
        let masters = self.router.masters(deadline).await?;
        let names: Vec<String> = masters.iter().map(|node| format!("{node:03}")).collect();
        let parts = || names.iter().map(String::as_str);
        let Some((part, _)) = cursor.next(parts()) else {
            return Ok(Reply::Scan(ScanPage { names: Vec::new(), failed: None, next: None }));
        };
        let next = cursor.after(part, None);
        let next = next.next(parts()).is_some().then_some(next);
        let at = names.iter().position(|name| name == part).unwrap_or(0);
        let scan = Command::Scan(Scan { pattern, cursor: ScanCursor::default() });
        let ticket = self.send_now(masters[at], scan, false, deadline);
        Ok(Reply::Scan(match self.outcome(&ticket, deadline).await {
            Ok(Reply::Scan(page)) => ScanPage { next, ..page },
            Ok(other) => unreachable!("{other:?} is of another kind than its command"),
            Err(error) => ScanPage { names: Vec::new(), failed: Some(error), next },
        }))
    }

    fn wire(&self) -> MutexGuard<'_, Wire> {
        self.wire.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// The answers to a batch of waiters.
fn answers_of(answer: Reply) -> vec::IntoIter<Result<AcquireAnswer, StoreError>> {
    match answer {
        Reply::Heartbeat(answers) => answers.into_iter(),
        other => unreachable!("{other:?} is of another kind than its command"),
    }
}
