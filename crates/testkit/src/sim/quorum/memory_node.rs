use std::{collections::BTreeMap, time::Duration};

use leasehold_core::{
    AcquisitionId, Fence, LockName, Mode, RuntimeId, RuntimeLabel,
    store::{Push, WaiterRecord},
};
use leasehold_quorum::{Busy, NodeAnswer, NodeCommand, NodeLease, Vote, Word};

/// What a node may do wrong.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum NodeMistake {
    /// After a loss of its data it votes at once.
    VotesAtOnce,
    /// It takes a fence that others have passed.
    TakesAnyFence,
    /// A try takes the place of a newer one of the same acquisition.
    TakesAnyTry,
}

/// The rules of one node, as the script of the nodes has them, in memory. All times are in
/// microseconds since the Unix epoch by the clock of the node.
#[derive(Debug)]
pub struct MemoryNode {
    locks: BTreeMap<LockName, Row>,
    /// From when on it counts.
    counts_from: u64,
    tolerance: u64,
    mistake: Option<NodeMistake>,
}

#[derive(Debug, Default)]
struct Row {
    counter: u64,
    lease: Option<Held>,
    waiters: BTreeMap<AcquisitionId, Waiter>,
    turn: Option<(AcquisitionId, u64)>,
    /// Until when acquisitions and tries are dead; 0 for all tries.
    marks: BTreeMap<(AcquisitionId, u64), u64>,
}

#[derive(Debug, Clone)]
struct Held {
    id: AcquisitionId,
    attempt: u64,
    fence: u64,
    before: u64,
    since: u64,
    ends: u64,
    holds: (u32, u64),
    label: RuntimeLabel,
    keeps: bool,
    kept: bool,
}

#[derive(Debug, Clone)]
struct Waiter {
    since: u64,
    until: u64,
    heard_at: u64,
    label: RuntimeLabel,
}

/// When a command comes to which node.
#[derive(Debug, Clone, Copy)]
struct Given {
    now: u64,
    tolerance: u64,
    mistake: Option<NodeMistake>,
}

/// How long a runtime whose turn it is may take.
const WINDOW: u64 = 50_000;

/// For how long an acquisition or a try stays dead.
const MARK: u64 = 30_000_000;

impl MemoryNode {
    /// A node that counts from the beginning.
    pub fn new(tolerance: Duration, mistake: Option<NodeMistake>) -> Self {
        Self { locks: BTreeMap::new(), counts_from: 0, tolerance: micros(tolerance), mistake }
    }

    /// Loses everything; it counts again from an instant on.
    pub(super) fn lose_all(&mut self, counts_from: u64) {
        self.locks.clear();
        self.counts_from = counts_from;
    }

    /// Executes a command, at a time in microseconds since the Unix epoch: what it answers, and what it tells whom.
    pub fn execute(
        &mut self,
        now: u64,
        command: &NodeCommand,
    ) -> (NodeAnswer, Vec<(RuntimeId, Push)>) {
        let NodeCommand { name, id, word } = command;
        let mut messages = Vec::new();
        let is_vote = matches!(
            word,
            Word::Ask { .. }
                | Word::Settle { .. }
                | Word::Renew { .. }
                | Word::Spread { .. }
                | Word::Hold { .. }
                | Word::Inspect
        );
        if is_vote && self.counts_from > now {
            let rest = Some(duration(self.counts_from - now));
            return (NodeAnswer::Out { rest }, messages);
        }
        let given = Given { now, tolerance: self.tolerance, mistake: self.mistake };
        let row = self.locks.entry(name.clone()).or_default();
        row.pass_time(now);
        if self.mistake == Some(NodeMistake::TakesAnyFence)
            && let Word::Settle { attempt, fence } = word
            && row.is_its(*id, *attempt)
            && let Some(lease) = &mut row.lease
        {
            lease.fence = *fence;
        }
        let mut tell = |to: AcquisitionId, push: Push| messages.push((to.runtime(), push));
        let answer = row.execute(given, *id, word, name, &mut tell);
        (answer, messages)
    }

    /// The locks that it knows.
    pub(super) fn names(&self) -> Vec<LockName> {
        self.locks.keys().cloned().collect()
    }

    /// Who holds a lock there, of those that have left nothing undone.
    pub(super) fn holder(&mut self, now: u64, name: &LockName) -> Option<(AcquisitionId, u64)> {
        let row = self.locks.get_mut(name)?;
        row.pass_time(now);
        row.lease.as_ref().map(|lease| (lease.id, lease.attempt))
    }
}

impl Row {
    /// What is over by now.
    fn pass_time(&mut self, now: u64) {
        if self.lease.as_ref().is_some_and(|lease| lease.ends <= now) {
            self.lease = None;
        }
        self.waiters.retain(|_, waiter| waiter.until > now);
        self.marks.retain(|_, until| *until > now);
        if self.waiters.is_empty() {
            self.turn = None;
        }
    }

    fn execute(
        &mut self,
        given: Given,
        id: AcquisitionId,
        word: &Word,
        name: &LockName,
        tell: &mut impl FnMut(AcquisitionId, Push),
    ) -> NodeAnswer {
        let now = given.now;
        match word {
            Word::Ask { .. } => self.ask(given, id, word, name, tell),
            Word::Settle { attempt, fence } => {
                if !self.is_its(id, *attempt) || !self.fix(*fence) {
                    return NodeAnswer::Gone;
                }
                self.left(now)
            }
            Word::Renew { attempt, fence, ttl } => {
                if !self.is_its(id, *attempt) || !self.fix(*fence) {
                    return NodeAnswer::Gone;
                }
                self.extend(now, micros(*ttl))
            }
            Word::Spread { attempt, fence, before, ttl, holds, label, keeps } => {
                if self.lease.is_some() {
                    if !self.is_its(id, *attempt) || !self.fix(*fence) {
                        return NodeAnswer::Gone;
                    }
                    return self.extend(now, micros(*ttl));
                }
                if *fence <= self.counter || self.is_dead(id, *attempt) {
                    return NodeAnswer::Gone;
                }
                self.counter = *fence;
                self.lease = Some(Held {
                    id,
                    attempt: *attempt,
                    fence: *fence,
                    before: *before,
                    since: now,
                    ends: now + micros(*ttl),
                    holds: holds.map_or((1, 0), |holds| (holds.count.get(), holds.number)),
                    label: label.clone(),
                    keeps: *keeps,
                    kept: false,
                });
                self.left(now)
            }
            Word::Hold { attempt, update, ttl } => {
                if !self.is_its(id, *attempt) {
                    return NodeAnswer::Gone;
                }
                let Some(lease) = &mut self.lease else { return NodeAnswer::Gone };
                if update.number <= lease.holds.1 {
                    return self.left(now);
                }
                lease.holds = (update.count.get(), update.number);
                self.extend(now, micros(ttl.get()))
            }
            Word::End { attempt, fence, marks } => {
                self.waiters.remove(&id);
                let is_its =
                    |lease: &Held| lease.id == id && (*attempt == 0 || lease.attempt == *attempt);
                let has = self.lease.as_ref().is_some_and(is_its) && self.is_in_block(*fence);
                if has && self.lease.as_ref().is_some_and(|lease| !lease.kept) {
                    self.lease = None;
                    self.pass_on(now, name, tell);
                    return NodeAnswer::Ended { counter: 0 };
                }
                if has && let Some(lease) = &self.lease {
                    return NodeAnswer::Kept { remaining: duration(lease.ends - now) };
                }
                if *marks {
                    self.marks.insert((id, *attempt), now + MARK);
                }
                NodeAnswer::Gone
            }
            Word::Keep { attempt, fence, rest } => {
                let is_its =
                    |lease: &Held| lease.id == id && (*attempt == 0 || lease.attempt == *attempt);
                if !self.lease.as_ref().is_some_and(is_its) || !self.is_in_block(*fence) {
                    return NodeAnswer::Gone;
                }
                let Some(lease) = &mut self.lease else { return NodeAnswer::Gone };
                if !lease.kept {
                    (lease.kept, lease.ends) = (true, now + micros(*rest));
                }
                NodeAnswer::Kept { remaining: duration(lease.ends - now) }
            }
            Word::Withdraw => self.withdraw(now, id, name, tell),
            Word::Force { fence } => self.force(now, id, *fence, name, tell),
            Word::Pass { fence } => {
                self.counter = self.counter.max(*fence);
                NodeAnswer::Ended { counter: self.counter }
            }
            Word::Inspect => match &self.lease {
                None => NodeAnswer::Free { counter: self.counter },
                Some(lease) => NodeAnswer::Record(Box::new(self.record(lease, now))),
            },
        }
    }

    fn force(
        &mut self,
        now: u64,
        id: AcquisitionId,
        fence: u64,
        name: &LockName,
        tell: &mut impl FnMut(AcquisitionId, Push),
    ) -> NodeAnswer {
        let is_its = self.lease.as_ref().is_some_and(|lease| lease.id == id);
        if !is_its || !self.is_in_block(fence) {
            return NodeAnswer::Gone;
        }
        let Some(lease) = self.lease.take() else { return NodeAnswer::Gone };
        if let Ok(fence) = Fence::try_from(lease.fence.max(1)) {
            tell(id, Push::ForceReleased { name: name.clone(), id, fence });
        }
        self.counter = (self.counter.max(fence) + 1).min(Fence::MAX + 1);
        self.pass_on(now, name, tell);
        NodeAnswer::Ended { counter: self.counter }
    }

    fn withdraw(
        &mut self,
        now: u64,
        id: AcquisitionId,
        name: &LockName,
        tell: &mut impl FnMut(AcquisitionId, Push),
    ) -> NodeAnswer {
        self.waiters.remove(&id);
        self.marks.insert((id, 0), now + MARK);
        let ended = self.lease.as_ref().is_some_and(|lease| lease.id == id && !lease.kept);
        if ended {
            self.lease = None;
        }
        let was_its_turn = self.turn.is_some_and(|(turn, _)| turn == id);
        if ended || was_its_turn {
            self.turn = None;
            if self.lease.is_none() {
                self.pass_on(now, name, tell);
            }
        }
        NodeAnswer::Withdrawn { ended }
    }

    fn record(&self, lease: &Held, now: u64) -> NodeLease {
        let mark = if lease.keeps { "~" } else { "" };
        NodeLease {
            id: lease.id,
            attempt: lease.attempt,
            fence: lease.fence,
            before: lease.before,
            holds: lease.holds.0,
            remaining: duration(lease.ends - now),
            label: format!("{mark}{}", lease.label),
            held_for: duration(now.saturating_sub(lease.since)),
            kept: lease.kept,
            waiters: self
                .line()
                .into_iter()
                .filter_map(|(since, id)| {
                    let waiter = self.waiters.get(&id)?;
                    let waiting_for = duration(now.saturating_sub(since));
                    let silent_for = duration(now.saturating_sub(waiter.heard_at));
                    let label = waiter.label.to_string();
                    Some(WaiterRecord { id, mode: Mode::Write, waiting_for, silent_for, label })
                })
                .collect(),
        }
    }

    fn ask(
        &mut self,
        Given { now, tolerance, mistake }: Given,
        id: AcquisitionId,
        word: &Word,
        name: &LockName,
        tell: &mut impl FnMut(AcquisitionId, Push),
    ) -> NodeAnswer {
        let Word::Ask { attempt, ballot, ttl, waited, heard, label, keeps } = word else {
            return NodeAnswer::Gone;
        };
        if self.is_dead(id, *attempt) {
            return NodeAnswer::Withdrawn { ended: false };
        }
        let least = (self.counter + 1).max(now);
        if let Some(lease) = self.lease.as_ref().filter(|_| self.is_its(id, *attempt)) {
            return NodeAnswer::Granted(Vote {
                before: lease.before,
                accepted: lease.fence == *ballot,
                least,
                remaining: duration(lease.ends - now),
                contended: false,
                now,
            });
        }
        let (waited, heard) = (micros(*waited), micros(*heard));
        let waits = (heard > 0).then(|| {
            let since = self.arrival(id, now, waited);
            Waiter { since, until: now + heard, heard_at: now, label: label.clone() }
        });
        // Who does not wait stands behind all.
        let since = waits.as_ref().map_or(u64::MAX, |waiter| waiter.since);
        // An older try of the same acquisition, which nobody believes: the newer one takes its place.
        let takes_any = mistake == Some(NodeMistake::TakesAnyTry);
        let is_newer = self.lease.as_ref().is_some_and(|lease| {
            lease.id == id && !lease.kept && (lease.attempt < *attempt || takes_any)
        });
        if let Some(lease) = self.lease.clone().filter(|_| !is_newer) {
            let older = self.older_than(since, id, None);
            if lease.id != id
                && let Some(waiter) = waits
            {
                self.waiters.insert(id, waiter);
                if lease.keeps
                    && !lease.kept
                    && let Ok(fence) = Fence::try_from(lease.fence.max(2))
                {
                    tell(lease.id, Push::Wanted { name: name.clone(), id: lease.id, fence });
                }
            }
            return NodeAnswer::Busy(Busy {
                remaining: duration(lease.ends - now),
                keeps: lease.keeps && !lease.kept,
                older,
                holder: Some(lease.id),
                now,
            });
        }
        while let Some(&(first_since, first)) = self.line().first()
            && !is_newer
            && first != id
            && first_since <= since
        {
            if self.turn.is_some_and(|(turn, _)| turn == id) {
                break;
            }
            let (turn, until) = match self.turn {
                Some(turn) => turn,
                None => self.give_turn(first, now, name, tell),
            };
            if until > now {
                let older = self.older_than(since, id, Some(turn));
                if let Some(waiter) = waits {
                    self.waiters.insert(id, waiter);
                }
                let (remaining, keeps, holder) = (duration(until - now), false, None);
                return NodeAnswer::Busy(Busy { remaining, keeps, older, holder, now });
            }
            self.waiters.remove(&turn);
            self.turn = None;
        }
        let accepted = *ballot > self.counter && ballot.abs_diff(now) <= tolerance;
        let before = self.counter;
        if accepted {
            self.counter = *ballot;
        }
        self.lease = Some(Held {
            id,
            attempt: *attempt,
            fence: if accepted { *ballot } else { 0 },
            before,
            since: now,
            ends: now + micros(*ttl),
            holds: (1, 0),
            label: label.clone(),
            keeps: *keeps,
            kept: false,
        });
        self.waiters.remove(&id);
        self.turn = None;
        let contended = !self.waiters.is_empty();
        // As a rule a grant is told in a word, without the time.
        let told = if accepted && !contended { 0 } else { now };
        NodeAnswer::Granted(Vote { before, accepted, least, remaining: *ttl, contended, now: told })
    }

    /// Since when one waits that asks, by the clock of this node.
    fn arrival(&self, id: AcquisitionId, now: u64, waited: u64) -> u64 {
        let known = self.waiters.get(&id).map(|waiter| waiter.since);
        let since = known.unwrap_or_else(|| match self.line().last() {
            Some((last, _)) if waited == 0 => now.max(last + 1),
            _ => now,
        });
        if waited > 0 { since.min(now - waited) } else { since }
    }

    /// How many others wait for longer, but for the one whose turn it is.
    fn older_than(&self, since: u64, id: AcquisitionId, turn: Option<AcquisitionId>) -> u64 {
        let others =
            self.waiters.iter().filter(|(other, _)| **other != id && Some(**other) != turn);
        others.filter(|(_, waiter)| waiter.since < since).count() as u64
    }

    /// Those who wait, the oldest first.
    fn line(&self) -> Vec<(u64, AcquisitionId)> {
        let mut line: Vec<_> =
            self.waiters.iter().map(|(id, waiter)| (waiter.since, *id)).collect();
        line.sort_unstable();
        line
    }

    fn give_turn(
        &mut self,
        id: AcquisitionId,
        now: u64,
        name: &LockName,
        tell: &mut impl FnMut(AcquisitionId, Push),
    ) -> (AcquisitionId, u64) {
        let turn = (id, now + WINDOW);
        self.turn = Some(turn);
        if let Ok(fence) = Fence::try_from(1_u64) {
            tell(id, Push::Wanted { name: name.clone(), id, fence });
        }
        turn
    }

    fn pass_on(&mut self, now: u64, name: &LockName, tell: &mut impl FnMut(AcquisitionId, Push)) {
        if let Some(&(_, first)) = self.line().first() {
            self.give_turn(first, now, name, tell);
        }
    }

    fn is_dead(&self, id: AcquisitionId, attempt: u64) -> bool {
        self.marks.contains_key(&(id, 0)) || self.marks.contains_key(&(id, attempt))
    }

    fn is_its(&self, id: AcquisitionId, attempt: u64) -> bool {
        self.lease
            .as_ref()
            .is_some_and(|lease| lease.id == id && lease.attempt == attempt && !lease.kept)
    }

    fn is_in_block(&self, fence: u64) -> bool {
        let Some(lease) = &self.lease else { return false };
        if fence == 0 || lease.fence == 0 && (lease.before == 0 || fence > lease.before) {
            return true;
        }
        fence <= lease.fence && (fence > lease.before && lease.before != 0 || fence == lease.fence)
    }

    /// Writes the fence of a lease that stands, unless another has passed it.
    fn fix(&mut self, fence: u64) -> bool {
        let Some(lease) = &mut self.lease else { return false };
        if lease.fence != fence {
            if fence <= self.counter {
                return false;
            }
            (self.counter, lease.fence) = (fence, fence);
        }
        true
    }

    fn extend(&mut self, now: u64, life: u64) -> NodeAnswer {
        if let Some(lease) = &mut self.lease {
            lease.ends = lease.ends.max(now + life);
        }
        self.left(now)
    }

    fn left(&self, now: u64) -> NodeAnswer {
        match &self.lease {
            Some(lease) => NodeAnswer::Held {
                remaining: duration(lease.ends - now),
                contended: !self.waiters.is_empty(),
            },
            None => NodeAnswer::Gone,
        }
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

fn duration(micros: u64) -> Duration {
    Duration::from_micros(micros)
}
