use std::{sync::Arc, time::Duration};

use leasehold_core::{
    Fence, Instant, Mode, StoreError, StoreErrorKind, Terms, lease::Grant, metric::WakeSource,
};
use leasehold_watchdog::Watch;

use crate::durations::TURNS;

use super::{
    env::{Env, TurnId},
    local_queue::Ticket,
};

/// What a runtime has under one grant: tokens, which it hands from task to task.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(super) grant: Arc<Grant>,
    /// The present token of its block; each goes to one task, in order.
    pub(super) token: Fence,
    /// Until when the turn is believed in, by what the last holder knew.
    pub(super) until: Instant,
    /// Whether its lease says that the runtime keeps it. Then a runtime that queues behind it recalls
    /// it.
    pub(super) keeps: bool,
    /// Since when another runtime is known to want the lock.
    pub(super) wanted_at: Option<Instant>,
    /// Whether another runtime wanted the lock, before the turn or in it.
    pub(super) was_wanted: bool,
    /// How many tasks are still to be served while other runtimes wait; never more than a block
    /// has.
    pub(super) to_serve: u16,
    /// When the first lease was taken.
    pub(super) began_at: Option<Instant>,
    pub(super) leases: u32,
    pub(super) token_state: TokenState,
    pub(super) watch: Option<Watch>,
    /// Commands that asked for the grant, and may still be executed.
    pub(super) unanswered: UnansweredCommands,
}

/// Who has the present token of a turn.
#[derive(Debug, Clone, Copy)]
pub(super) enum TokenState {
    /// A task that may take it.
    Offered(Offer),
    /// A task that has taken it.
    Held,
    /// No task: until this instant, the turn is kept for the next task.
    Idle { until: Instant },
}

/// The present token is on offer to one task.
#[derive(Debug, Clone, Copy)]
pub(super) struct Offer {
    pub(super) ticket: Ticket,
    pub(super) at: Instant,
    /// What wakes the task; `None` if it has asked itself.
    pub(super) source: Option<WakeSource>,
}

impl Turn {
    pub(super) fn id(&self) -> TurnId {
        TurnId::of(&self.grant)
    }

    /// Whether the turn is over for the next task, who wants a lease on `terms`.
    pub(super) fn is_over_for(&self, env: &Env<'_>, terms: Terms) -> bool {
        let limit = match self.wanted_at.is_some() {
            true => *TURNS.end(),
            // It learns of runtimes that come later, unless all messages are lost.
            false if self.keeps => self.grant.ttl().get(),
            false => *TURNS.start(),
        };
        let time_is_up =
            self.began_at.is_some_and(|began_at| env.now.saturating_since(began_at) >= limit);
        let is_served = self.wanted_at.is_some() && self.to_serve == 0;
        // The last lease may not have been renewed.
        let is_late = env.now >= self.until - env.timing.enough(self.grant.ttl());
        is_served || is_late || time_is_up || self.is_spent() || terms != self.grant.terms()
    }

    /// The next task is offered the next token; `false` when there is none.
    pub(super) fn offer(
        &mut self,
        env: &Env<'_>,
        ticket: Ticket,
        source: Option<WakeSource>,
    ) -> bool {
        let next = match self.grant.mode() {
            Mode::Write => Fence::try_from(self.token.get() + 1).ok(),
            // Readers share one.
            Mode::Read => Some(self.token),
        };
        let Some(token) = next.filter(|_| !self.is_spent()) else { return false };
        self.token = token;
        self.to_serve = self.to_serve.saturating_sub(1);
        self.token_state = TokenState::Offered(Offer { ticket, at: env.now, source });
        true
    }

    fn is_spent(&self) -> bool {
        self.grant.mode() == Mode::Write && self.token >= self.grant.last()
    }

    pub(super) fn hand_over(&mut self, env: &Env<'_>) -> Option<TakenToken> {
        let Offer { ticket, at, source } = self.open_offer()?;
        let number = if self.leases == 0 { self.grant.id().number() } else { ticket };
        let woken = source.map(|source| (source, env.now.saturating_since(at)));
        self.began_at.get_or_insert(env.now);
        self.leases += 1;
        self.token_state = TokenState::Held;
        let (turn, fence, until, watch) =
            (Arc::clone(&self.grant), self.token, self.until, self.watch);
        Some(TakenToken { turn, number, fence, until, watch, woken })
    }

    pub(super) fn has_lease(&self, token: Fence) -> bool {
        matches!(self.token_state, TokenState::Held) && self.token == token
    }

    pub(super) fn open_offer(&self) -> Option<Offer> {
        match self.token_state {
            TokenState::Offered(offer) => Some(offer),
            TokenState::Held | TokenState::Idle { .. } => None,
        }
    }

    /// Another runtime wants the lock, while `waiting` tasks wait here for a token.
    pub(super) fn on_wanted(&mut self, now: Instant, waiting: usize) {
        self.was_wanted = true;
        if self.wanted_at.is_none() {
            self.wanted_at = Some(now);
            self.to_serve = u16::try_from(waiting).unwrap_or(u16::MAX);
        }
    }

    /// Whether a task that came at `came` may read with those who read. Later ones are not to keep a writer waiting;
    /// if all messages are lost, that is for one ttl at most.
    pub(super) fn admits(&self, now: Instant, came: Instant) -> bool {
        let began_at = self.began_at.unwrap_or(now);
        self.wanted_at.is_none_or(|wanted_at| came <= wanted_at)
            && now < began_at + self.grant.ttl().get()
    }

    /// Stays idle for so long at most, if no other runtime is known to want the lock, or to have had
    /// it before; whether it does.
    pub(super) fn keep_idle(&mut self, env: &Env<'_>, keep_idle: Duration) -> bool {
        let ttl = self.grant.ttl();
        let enter_until = self.until - env.timing.enough(ttl);
        // If all messages are lost, others are kept out for one ttl at most.
        let over = self.began_at.unwrap_or(env.now) + ttl.get();
        let until = (env.now + keep_idle).min(enter_until).min(over);
        let stays = self.keeps && !self.was_wanted && env.now < until;
        if stays {
            self.token_state = TokenState::Idle { until };
        }
        stays
    }

    pub(super) fn idle_ends_at(&self) -> Option<Instant> {
        match self.token_state {
            TokenState::Idle { until } => Some(until),
            TokenState::Offered(_) | TokenState::Held => None,
        }
    }

    /// When the open offer is stale: half the claim window after it was made.
    pub(super) fn stale_at(&self, env: &Env<'_>) -> Option<Instant> {
        let claim_window = env.timing.claim_window(self.grant.ttl());
        self.open_offer().map(|offer| (env.rules.offer_ends)(offer.at, claim_window))
    }
}

/// How many commands about an acquisition were not answered, and may still be executed. If there is any,
/// the acquisition is withdrawn when its turn ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct UnansweredCommands(u16);

impl UnansweredCommands {
    pub(super) fn on_send(&mut self) {
        self.0 = self.0.saturating_add(1);
    }

    /// A command was answered, or failed. It still counts if it may be executed later.
    pub(super) fn on_reply<T>(&mut self, result: &Result<T, StoreError>) {
        let is_unknown = |error: &StoreError| error.kind() == StoreErrorKind::Indeterminate;
        if !result.as_ref().is_err_and(is_unknown) {
            self.0 = self.0.saturating_sub(1);
        }
    }

    pub(super) fn is_any(self) -> bool {
        self.0 > 0
    }
}

/// An offer that a task has taken.
#[derive(Debug)]
pub(crate) struct TakenToken {
    pub(crate) turn: Arc<Grant>,
    /// The number of the lease.
    pub(crate) number: u64,
    pub(crate) fence: Fence,
    pub(crate) until: Instant,
    pub(crate) watch: Option<Watch>,
    /// What woke its task, if something did, and how long after the offer it was taken.
    pub(crate) woken: Option<(WakeSource, Duration)>,
}

/// How the turns of a name are kept when no task holds them.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub(crate) struct Keep {
    /// For how long a turn is kept at most.
    pub(crate) idle: Duration,
    /// Whether it is worth it; see `Watermarks::is_worth_keeping`.
    pub(crate) is_worth_it: bool,
}
