use std::{
    collections::{BTreeMap, BTreeSet, VecDeque},
    sync::{Mutex, MutexGuard, PoisonError},
    time::Duration,
};

use tokio::sync::watch;

use super::{
    action::Action,
    counts::Counts,
    hole::{Direction, Hole, Links},
    message::{Message, Side},
    replay::LateCopy,
    rules::Rules,
    storm::Storm,
    upstream::Upstream,
};
use crate::{faulty::CommandKind, sim::Dice};

/// What the test and the connections share.
#[derive(Debug, Default)]
pub(super) struct Shared {
    book: Mutex<Book>,
    /// Told when holes or connections have changed.
    changed: watch::Sender<()>,
}

/// How the network is, and what was seen of it.
#[derive(Debug, Default)]
pub(super) struct Book {
    pub(super) rules: Rules,
    pub(super) storm: Option<(Storm, Dice)>,
    pub(super) chops: bool,
    pub(super) delay: Duration,
    pub(super) refuses: bool,
    pub(super) hole: Hole,
    pub(super) links: BTreeMap<u64, LinkState>,
    pub(super) counts: Counts,
    pub(super) copies: VecDeque<LateCopy>,
    /// Where the next connections lead.
    pub(super) upstreams: VecDeque<Upstream>,
}

/// What is known of an open connection.
#[derive(Debug, Default)]
pub(super) struct LinkState {
    pub(super) hole: Hole,
    pub(super) carried: BTreeSet<CommandKind>,
    pub(super) subscribed: bool,
    pub(super) is_reset: bool,
}

impl Shared {
    pub(super) fn book(&self) -> MutexGuard<'_, Book> {
        self.book.lock().unwrap_or_else(PoisonError::into_inner)
    }

    /// Changes the book and wakes the connections that wait for something in it.
    pub(super) fn change<T>(&self, change: impl FnOnce(&mut Book) -> T) -> T {
        let changed = change(&mut self.book());
        self.changed.send_replace(());
        changed
    }

    /// Waits until something holds.
    pub(super) async fn until(&self, holds: impl Fn(&Book) -> bool) {
        if holds(&self.book()) {
            return;
        }
        let mut changed = self.changed.subscribe();
        // The book is looked at after the subscription, so that no change is missed.
        while !holds(&self.book()) {
            // Never closed: this is its sender.
            let _ = changed.changed().await;
        }
    }
}

impl Book {
    /// The most copies that are kept.
    const MOST_COPIES: usize = 4096;

    /// Counts a message and says what strikes it.
    pub(super) fn strike(&mut self, message: &Message<'_>) -> Option<Action> {
        let counts = &mut self.counts;
        match message.side {
            Side::Request => counts.requests += 1,
            Side::Reply => counts.replies += 1,
            Side::Push => counts.pushes += 1,
        }
        let storm = |(storm, dice): &(Storm, Dice)| storm.strike(dice, message.side);
        let by_rule = self.rules.strike(message);
        let action = by_rule.or_else(|| self.storm.as_ref().and_then(storm));
        self.counts.struck += u64::from(action.is_some());
        action
    }

    /// Whether messages of a connection pass in a direction.
    pub(super) fn passes(&self, link: u64, direction: Direction) -> bool {
        let own = self.links.get(&link).is_some_and(|link| link.hole.swallows(direction));
        !own && !self.hole.swallows(direction)
    }

    /// Keeps a copy of a request, unless there are too many.
    pub(super) fn keep(&mut self, copy: LateCopy) {
        if self.copies.len() < Self::MOST_COPIES {
            self.copies.push_back(copy);
        }
    }

    /// Does something to some of the connections; to how many.
    pub(super) fn each(&mut self, links: Links, mut act: impl FnMut(&mut LinkState)) -> usize {
        let is_one = |(at, link): &(usize, &mut LinkState)| match links {
            Links::All => true,
            Links::Nth(n) => *at == n,
            Links::Carrying(kind) => link.carried.contains(&kind),
            Links::Subscribed => link.subscribed,
        };
        let open = self.links.values_mut().filter(|link| !link.is_reset);
        let meant = open.enumerate().filter(is_one);
        meant.map(|(_, link)| act(link)).count()
    }

    /// Where a new connection leads: the servers take turns.
    pub(super) fn next_upstream(&mut self) -> Option<Upstream> {
        let upstream = self.upstreams.pop_front()?;
        self.upstreams.push_back(upstream.clone());
        Some(upstream)
    }

    /// Makes the network as good as new.
    pub(super) fn heal(&mut self) {
        self.rules.clear();
        self.storm = None;
        (self.chops, self.refuses) = (false, false);
        (self.delay, self.hole) = (Duration::ZERO, Hole::default());
        self.each(Links::All, |link| link.hole = Hole::default());
    }
}
