use std::{sync::Arc, task::Waker, time::Duration};

use leasehold_core::{
    AcquisitionId, FenceToken, Instant, StoreError, StoreErrorKind, Terms,
    lease::Grant,
    metric::{ReleaseVia, WakeSource},
};
use leasehold_watchdog::Watch;

use crate::release::rest;

use super::{
    join::Taken,
    place::Place,
    queue::Ticket,
    state::{Cohort, Env, NextPlace, TurnId, TurnRelease, wake_tries},
};

/// What a runtime has of a name in Redis: one live acquisition at most.
// Very many names have a quiet turn: what is larger is boxed.
#[derive(Debug, Default)]
pub(crate) enum Phase {
    #[default]
    Idle,
    /// The first task asks by itself, and awaits the answer.
    Asking(Asking),
    /// A place in the queue.
    Place(Box<Place>),
    /// The lock.
    Turn(Turn),
    /// The lock, which is being given back: no token is offered any more.
    Releasing(Box<Releasing>),
}

/// A first command. The task that sent it awaits its answer.
#[derive(Debug)]
pub(crate) struct Asking {
    /// Its number is the ticket of the task that sent it.
    pub(super) id: AcquisitionId,
    pub(super) terms: Terms,
    pub(super) heartbeat: Option<u64>,
    /// Whether the lease says that the runtime keeps it.
    pub(super) keeps: bool,
    pub(super) sent_at: Instant,
    pub(super) polled_at: Instant,
    /// When its task is to be woken, to show that it is there; `None` once woken.
    pub(super) calls_at: Option<Instant>,
    /// Messages may have been lost: when the runtime asks again.
    pub(super) asks_soon: Option<Instant>,
}

#[derive(Debug)]
pub(crate) struct Releasing {
    pub(super) turn: Turn,
    /// What is queued with the release; chosen when it is sent for the first time.
    pub(super) next: Option<NextPlace>,
    /// When the release may have been sent first. From then on `next` is fixed, because all copies
    /// must queue the same id.
    pub(super) sent_at: Option<Instant>,
    /// Whether more than one copy was sent, or a copy failed.
    pub(super) is_repeated: bool,
    pub(super) closed_until: Option<Instant>,
    /// Since when its holder waits for the answer; `None` where the runtime does.
    pub(super) attended_since: Option<Instant>,
    /// Messages may have been lost: when another copy is due, whose answer shows them.
    pub(super) asks_soon: Option<Instant>,
    /// Whether that copy is due now.
    pub(super) asks_now: bool,
    pub(super) sender_waker: Option<Waker>,
}

impl Phase {
    pub(super) fn releasing(&mut self, id: TurnId) -> Option<&mut Releasing> {
        match self {
            Self::Releasing(releasing) if releasing.turn.id() == id => Some(releasing),
            _ => None,
        }
    }
}

impl Cohort {
    /// The turn begins, if the grant is news; the first task in order is offered the first token.
    pub(super) fn begin(
        &mut self,
        env: &mut Env<'_>,
        grant: Grant,
        contended: bool,
        source: Option<WakeSource>,
    ) {
        if !(env.rules.is_news)(grant.first(), self.begun) {
            if let Phase::Place(place) = &mut self.phase {
                place.ask_at(env.next_heartbeat(env.now, place.terms.ttl));
            }
            return;
        }
        let Some((ticket, terms)) = self.queue.first() else {
            return self.orphan(env, grant.id());
        };
        let (mut unanswered, mut keeps) = (Unanswered::default(), false);
        match std::mem::take(&mut self.phase) {
            Phase::Place(place) => (unanswered, keeps) = (place.unanswered, place.keeps),
            Phase::Asking(asking) => {
                keeps = asking.keeps;
                if source.is_some() {
                    // A push came before the answer.
                    unanswered.on_send();
                }
            }
            // The release that queued it may have been sent more than once.
            Phase::Releasing(releasing) => {
                keeps = releasing.next.is_some_and(|next| next.keeps);
                let Turn { grant, unanswered: old, .. } = &releasing.turn;
                if old.is_any() {
                    env.effects.withdraw.push((grant.id(), grant.ttl()));
                }
                if releasing.is_repeated {
                    unanswered.on_send();
                }
                wake_tries(&mut self.opening, &mut env.effects.wake);
            }
            Phase::Turn(_) | Phase::Idle => {}
        }
        self.begun = Some(grant.first());
        // The message may have come before the grant.
        let contended = contended || self.wanted.as_deref() == Some(&TurnId::of(&grant));
        // If more is left than its task's ttl, the lease would outlive that: the turn ends at once.
        let fits = grant.remaining(env.now) <= terms.ttl.get();
        let grant = if fits { grant.for_ttl(terms.ttl) } else { grant };
        let is_for_it = grant.terms() == terms;
        self.phase = Phase::Turn(Turn {
            token: grant.first(),
            until: grant.believed_until(),
            grant: Arc::new(grant),
            keeps,
            contended,
            was_wanted: contended || source == Some(WakeSource::Push),
            to_serve: u16::try_from(self.queue.len() - 1).unwrap_or(u16::MAX),
            began_at: None,
            leases: 0,
            hands: Hands::Offered(Offer { ticket, at: env.now, source }),
            watch: None,
            unanswered,
        });
        if is_for_it {
            env.effects.wake.extend(self.queue.waker(ticket));
        } else {
            // The task on whose terms it was asked is gone.
            self.release(env, None, None);
        }
    }
}

impl Asking {
    /// The task that sent it.
    pub(super) fn lead(&self) -> Ticket {
        self.id.number()
    }

    /// When to look next: to call its task, or to go on without it.
    pub(super) fn look_at(&self, env: &Env<'_>) -> Instant {
        let unattended_at = self.unattended_at(env);
        self.calls_at.map_or(unattended_at, |at| at.min(unattended_at))
    }

    /// When its task has not been polled for so long that it will not look at the answer.
    pub(super) fn unattended_at(&self, env: &Env<'_>) -> Instant {
        (env.rules.attended_from)(self.sent_at, self.polled_at)
            + env.timing.claim_window(self.terms.ttl)
    }
}

impl Releasing {
    /// When tasks wait no longer for the answer to a release that queues no place for them.
    // ADR 0004
    pub(super) fn overdue_at(&self, env: &Env<'_>) -> Option<Instant> {
        let sent_at = self.sent_at.filter(|_| self.next.is_none())?;
        let at = sent_at + env.timing.heartbeat_pause(self.turn.grant.ttl());
        Some(self.closed_until.map_or(at, |closed_until| closed_until.max(at)))
    }

    /// When the runtime sends a copy of its own, if the holder still waits.
    pub(super) fn unattended_at(&self, env: &Env<'_>) -> Option<Instant> {
        self.attended_since.map(|since| since + env.timing.claim_window(self.turn.grant.ttl()))
    }

    pub(super) fn stays_closed(&self, env: &Env<'_>) -> bool {
        rest(self.closed_until, env.now).is_some()
    }

    pub(super) fn command(&self, via: Option<ReleaseVia>) -> TurnRelease {
        let (ttl, closed_until) = (self.turn.grant.ttl(), self.closed_until);
        TurnRelease { turn: self.turn.id(), ttl, closed_until, via }
    }
}

/// What a runtime has under one grant: tokens, handed from task to task.
#[derive(Debug)]
pub(crate) struct Turn {
    pub(super) grant: Arc<Grant>,
    /// The present token of its block; each goes to one task, in order.
    pub(super) token: FenceToken,
    /// Until when the turn may be believed in, as the last holder left it.
    pub(super) until: Instant,
    /// Whether its lease says that the runtime keeps it: those who queue behind it have it
    /// recalled.
    pub(super) keeps: bool,
    pub(super) contended: bool,
    /// Whether another runtime wanted the lock, before the turn or in it.
    pub(super) was_wanted: bool,
    /// How many tasks are still to be served while other runtimes wait; never more than a block
    /// has.
    pub(super) to_serve: u16,
    /// When the first lease was taken.
    pub(super) began_at: Option<Instant>,
    pub(super) leases: u32,
    pub(super) hands: Hands,
    pub(super) watch: Option<Watch>,
    /// Commands that asked for the grant, and may still be executed.
    pub(super) unanswered: Unanswered,
}

/// Who has the present token of a turn.
#[derive(Debug, Clone, Copy)]
pub(crate) enum Hands {
    /// A task that may take it.
    Offered(Offer),
    /// A task that has taken it.
    Held,
    /// No task: the turn is kept for the next task that comes, until then at most.
    Idle { until: Instant },
}

/// The present token is on offer to one task.
#[derive(Debug, Clone, Copy)]
pub(crate) struct Offer {
    pub(crate) ticket: Ticket,
    pub(crate) at: Instant,
    /// What wakes the task; nothing where it asked by itself.
    pub(crate) source: Option<WakeSource>,
}

impl Turn {
    /// For how long a turn goes on if other runtimes waited when it began.
    const LIMIT: Duration = Duration::from_millis(50);
    /// For how long a turn goes on if none waited then. A turn that is not kept does not see
    /// runtimes that come later: a shorter limit lets them wait for less.
    const LIMIT_ALONE: Duration = Duration::from_millis(10);

    pub(super) fn id(&self) -> TurnId {
        TurnId::of(&self.grant)
    }

    /// Whether the turn is over for the next task, who wants a lease on `terms`.
    pub(super) fn is_over_for(&self, env: &Env<'_>, terms: Terms) -> bool {
        let limit = match self.contended {
            true => Self::LIMIT,
            // It hears of runtimes that come later, unless all messages are lost.
            false if self.keeps => self.grant.ttl().get(),
            false => Self::LIMIT_ALONE,
        };
        let time_is_up =
            self.began_at.is_some_and(|began_at| env.now.saturating_since(began_at) >= limit);
        let served = self.contended && self.to_serve == 0;
        served
            || time_is_up
            || self.is_spent()
            || terms != self.grant.terms()
            || !self.can_enter(env)
    }

    /// Whether enough belief is left for the next task: the last lease may not have been renewed.
    fn can_enter(&self, env: &Env<'_>) -> bool {
        env.now < self.until - env.timing.enough(self.grant.ttl())
    }

    /// The next task is offered the next token; `false` when there is none.
    pub(super) fn offer(
        &mut self,
        env: &Env<'_>,
        ticket: Ticket,
        source: Option<WakeSource>,
    ) -> bool {
        let next = FenceToken::try_from(self.token.get() + 1).ok();
        let Some(token) = next.filter(|_| !self.is_spent()) else { return false };
        self.token = token;
        self.to_serve = self.to_serve.saturating_sub(1);
        self.hands = Hands::Offered(Offer { ticket, at: env.now, source });
        true
    }

    fn is_spent(&self) -> bool {
        self.token >= self.grant.last()
    }

    pub(super) fn hand_over(&mut self, env: &Env<'_>) -> Option<Taken> {
        let offer = self.open_offer()?;
        let (first, until, watch) = (self.leases == 0, self.until, self.watch);
        self.began_at.get_or_insert(env.now);
        self.leases += 1;
        self.hands = Hands::Held;
        let (turn, token) = (Arc::clone(&self.grant), self.token);
        Some(Taken { turn, token, offer, until, watch, first })
    }

    pub(super) fn has_lease(&self, token: FenceToken) -> bool {
        matches!(self.hands, Hands::Held) && self.token == token
    }

    pub(super) fn open_offer(&self) -> Option<Offer> {
        match self.hands {
            Hands::Offered(offer) => Some(offer),
            Hands::Held | Hands::Idle { .. } => None,
        }
    }

    /// Another runtime wants the lock, while so many tasks wait here for a token.
    pub(super) fn on_wanted(&mut self, waiting: usize) {
        self.was_wanted = true;
        if !std::mem::replace(&mut self.contended, true) {
            self.to_serve = u16::try_from(waiting).unwrap_or(u16::MAX);
        }
    }

    /// Until when the turn stays idle, if no other runtime is known to want the lock, or to have
    /// had it before.
    pub(super) fn idle_until(&self, env: &Env<'_>, keep_idle: Duration) -> Option<Instant> {
        let ttl = self.grant.ttl();
        let enter_until = self.until - env.timing.enough(ttl);
        // If all messages are lost, others are kept out for one ttl at most.
        let over = self.began_at.unwrap_or(env.now) + ttl.get();
        let until = (env.now + keep_idle).min(enter_until).min(over);
        (self.keeps && !self.was_wanted && env.now < until).then_some(until)
    }

    pub(super) fn idle_ends_at(&self) -> Option<Instant> {
        match self.hands {
            Hands::Idle { until } => Some(until),
            Hands::Offered(_) | Hands::Held => None,
        }
    }

    /// When the open offer is stale: half the claim window after it was made.
    pub(super) fn stale_at(&self, env: &Env<'_>) -> Option<Instant> {
        let claim_window = env.timing.claim_window(self.grant.ttl());
        self.open_offer().map(|offer| (env.rules.offer_ends)(offer.at, claim_window))
    }
}

/// How many commands about an acquisition were not answered, and may still be executed: then it is
/// withdrawn when its turn ends.
#[derive(Debug, Clone, Copy, Default)]
pub(super) struct Unanswered(u16);

impl Unanswered {
    pub(super) fn on_send(&mut self) {
        self.0 = self.0.saturating_add(1);
    }

    /// A command was answered, or failed. One that may still be executed counts on.
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
