use std::{collections::VecDeque, time::Duration};

use leasehold_core::{
    AcquisitionId, Fence, Instant, StoreError, Terms, backoff,
    lease::HeardEnd,
    store::{Heartbeat, Place as Position, Waiter},
};

use crate::durations::PLACE_PAUSE;

use super::{
    env::{Beat, Env, earlier, unheard},
    turn::UnansweredCommands,
};

/// An acquisition that stands in the queue of Redis, or is on its way there.
#[derive(Debug)]
pub(crate) struct QueuedPlace {
    pub(super) id: AcquisitionId,
    pub(super) terms: Terms,
    pub(super) keeps: bool,
    /// When the latest heartbeats were sent, by number. A grant is believed from the one that it names.
    sent: VecDeque<(u64, Instant)>,
    pub(super) unanswered: UnansweredCommands,
    /// When the next heartbeat is due, even if the last one is not answered: a lost one must not cost the
    /// place.
    pub(super) next_at: Instant,
    /// From when on the next heartbeat may travel with others that are due.
    early_at: Instant,
    /// The first token of a grant that is being confirmed before a task believes in it.
    pub(super) confirming: Option<Fence>,
    pub(super) ahead: Option<u64>,
    /// When the lease in the way ends, as the server said.
    pub(super) heard: Option<HeardEnd>,
    failing: Option<Failing>,
    /// How many grants in a row too few replicas had, under ids before this one.
    taken_back: u32,
    /// The error of the last of them, and when it came.
    too_few: Option<(Instant, Failing)>,
    pub(super) round_trip: Duration,
    /// When the runtime asks again because messages may have been lost, whatever is answered before.
    pub(super) asks_soon: Option<Instant>,
}

impl QueuedPlace {
    /// How many heartbeats are remembered; as a rule, more than are sent within a claim window.
    const REMEMBERED: usize = 16;

    pub(super) fn wanted(env: &Env<'_>, id: AcquisitionId, terms: Terms, keeps: bool) -> Self {
        Self {
            id,
            terms,
            keeps,
            sent: VecDeque::new(),
            unanswered: UnansweredCommands::default(),
            next_at: env.now,
            early_at: env.now,
            confirming: None,
            ahead: None,
            heard: None,
            failing: None,
            taken_back: 0,
            too_few: None,
            round_trip: Duration::ZERO,
            asks_soon: None,
        }
    }

    /// Whether a command about it may have reached the server.
    pub(super) fn may_be_known(&self) -> bool {
        !self.sent.is_empty() || self.unanswered.is_any()
    }

    /// Whether a command before the last one may have queued it.
    pub(super) fn may_be_queued(&self) -> bool {
        self.sent.len() > 1 || self.unanswered.is_any()
    }

    pub(super) fn is_due(&self, env: &Env<'_>) -> bool {
        self.early_at <= env.now
    }

    pub(super) fn ask_at(&mut self, at: Instant) {
        let at = earlier(self.asks_soon, at);
        self.next_at = at;
        self.early_at = at;
    }

    /// Messages may have been lost, and answers to earlier commands do not show them.
    pub(super) fn ask_soon(&mut self, at: Instant) {
        self.asks_soon = Some(earlier(self.asks_soon, at));
        self.ask_at(self.next_at);
    }

    /// The last command failed, or none was answered since `started`.
    pub(super) fn failing(&self, started: Instant) -> Option<Failing> {
        let unheard = || self.ahead.is_none().then(|| Failing::unheard(started));
        self.failing.clone().or_else(unheard)
    }

    /// Sends the next heartbeat; `begun` as [`NameState::begun`](super::NameState::begun).
    pub(super) fn beat(&mut self, env: &Env<'_>, begun: Option<Fence>) -> Beat {
        let number = env.numbers.next_change();
        self.remember(number, env.now);
        self.unanswered.on_send();
        self.asks_soon = None;
        let ttl = self.terms.ttl;
        match self.seldom(env) {
            Some(pause) => self.ask_at(env.now + pause),
            None => self.ask_within(env, env.next_heartbeat(env.now, ttl)),
        }
        let heartbeat = Heartbeat { number, claim_window: env.timing.claim_window(ttl) };
        let (name, id, mode, keeps) = (env.name.clone(), self.id, self.terms.mode, self.keeps);
        let waiter = Waiter { name, id, mode, ttl, watermark: begun, keeps, heartbeat };
        Beat { waiter, sent_at: env.now }
    }

    /// A command that was sent at `sent_at` was answered "not yet".
    pub(super) fn on_not_yet(&mut self, env: &Env<'_>, sent_at: Instant, position: Position) {
        self.ahead = Some(position.ahead);
        let new = HeardEnd::new(env.now, position.remaining);
        self.heard = Some(self.heard.map_or(new, |heard| heard.hear(env.now, position.remaining)));
        self.failing = None;
        self.round_trip = env.now.saturating_since(sent_at);
        // When the present lease runs out it is worth asking again.
        // Redis rounds times to live to whole milliseconds.
        let over = env.now + position.remaining + Duration::from_millis(1);
        let last_sent = self.sent.back().map_or(sent_at, |(_, at)| sent_at.max(*at));
        let regular = env.next_heartbeat(last_sent, self.terms.ttl);
        if regular < over {
            self.ask_within(env, regular);
        } else {
            self.ask_at(over);
        }
    }

    /// The next heartbeat is to be sent then, or a little earlier with others.
    fn ask_within(&mut self, env: &Env<'_>, at: Instant) {
        self.ask_at(at);
        self.early_at = self.next_at.min(at - env.timing.claim_window(self.terms.ttl) / 16);
    }

    /// A command that was sent at `sent_at` failed in a way that waiting may mend.
    pub(super) fn on_failure(&mut self, env: &Env<'_>, sent_at: Instant, error: StoreError) {
        let known = self.failing.take();
        let (since, failed) =
            known.as_ref().map_or((sent_at, 0), |failing| (failing.since, failing.failed));
        let silent_since = known.and_then(|failing| failing.silent_since).or(Some(sent_at));
        let silent_since = silent_since.filter(|_| !error.is_sign_of_life());
        self.failing =
            Some(Failing { since, silent_since, failed: failed.saturating_add(1), error });
        if let Some(pause) = self.seldom(env) {
            return self.ask_at(env.now + pause);
        }
        // Never later than without the failure: it may be that of an older heartbeat.
        let longest = env.timing.heartbeat_pause(self.terms.ttl);
        let retry = env.now + backoff(PLACE_PAUSE..=longest, failed, 1.0 - env.jitter());
        let regular = self.sent.back().map(|(_, at)| env.next_heartbeat(*at, self.terms.ttl));
        self.ask_at(earlier(regular, retry));
    }

    /// A longer pause between two commands if answers take too long for the ttl: such commands cost the
    /// server as much as others, and help nobody.
    fn seldom(&self, env: &Env<'_>) -> Option<Duration> {
        let failing = self.failing.as_ref().filter(|failing| failing.error.is_ttl_too_short())?;
        let [shortest, longest] = [1, 15].map(Duration::from_secs);
        Some(backoff(shortest..=longest, failing.failed, 1.0 - env.jitter()))
    }

    /// The server has answered, although it said nothing about others.
    pub(super) fn on_answer(&mut self) {
        if let Some(failing) = &mut self.failing {
            failing.silent_since = None;
        }
    }

    /// This place replaces another one, whose grant too few replicas had; `error` says so.
    pub(super) fn follow(
        &mut self,
        env: &Env<'_>,
        old: &mut Self,
        sent_at: Instant,
        error: StoreError,
    ) {
        self.failing = old.failing.take();
        self.on_failure(env, sent_at, error);
        // Not counted by failures: between two of them the lock may be taken, which is no failure.
        let longest = env.timing.heartbeat_pause(self.terms.ttl);
        let pause = backoff(PLACE_PAUSE..=longest, old.taken_back, 1.0 - env.jitter());
        self.ask_at(self.next_at.max(env.now + pause));
        self.taken_back = old.taken_back.saturating_add(1);
        self.too_few = self.failing.clone().map(|failing| (env.now, failing));
    }

    /// The last grant of this runtime was taken back since `started`, as too few replicas had it.
    pub(super) fn too_few(&self, started: Instant) -> Option<Failing> {
        self.too_few.clone().filter(|(at, _)| *at >= started).map(|(_, failing)| failing)
    }

    /// When a heartbeat of this place was sent; `None` if it is forgotten.
    pub(super) fn sent_at(&self, number: u64) -> Option<Instant> {
        self.sent.iter().find(|(known, _)| *known == number).map(|(_, at)| *at)
    }

    pub(super) fn remember(&mut self, number: u64, at: Instant) {
        if self.sent.len() == Self::REMEMBERED {
            self.sent.pop_front();
        }
        self.sent.push_back((number, at));
    }
}

/// Commands about a lock that were not answered, or refused: whether others hold it is unknown.
#[derive(Debug, Clone)]
pub(crate) struct Failing {
    pub(crate) since: Instant,
    /// Since when the server has not answered them; `None` if it refused the last one.
    pub(crate) silent_since: Option<Instant>,
    /// How many have failed one after the other; zero when none was answered so far.
    pub(crate) failed: u32,
    pub(crate) error: StoreError,
}

impl Failing {
    pub(super) fn unheard(since: Instant) -> Self {
        Self { since, silent_since: None, failed: 0, error: unheard() }
    }

    /// One command has failed since then.
    pub(crate) fn once(since: Instant, error: StoreError) -> Self {
        Self { since, silent_since: None, failed: 1, error }
    }
}
