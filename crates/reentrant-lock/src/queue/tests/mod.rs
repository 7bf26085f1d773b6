use std::{
    task::{Poll, Waker},
    time::Duration,
};

use leasehold_core::{
    Entropy, Fence, Instant, LockName, Mode, Replication, RuntimeId, Secret, StoreError,
    StoreErrorKind, Terms, Ttl,
    lease::LossReason,
    metric::{KeptOutcome, ReleaseVia},
    store::{AcquireAnswer, Granted, Place, ReleaseAnswer, RenewAnswer},
};
use uuid::Uuid;

use super::{
    Effects, Env, Joined, Keep, Lead, LeasePoll, NameState, NoLease, Numbers, Outgoing, TakenToken,
    Ticket, TimedAnswer, TurnId, TurnRelease, name_state::Phase, unheard,
};
use crate::{seam::Rules, timing::Timing};

mod acks;
mod idle;
mod place;
mod release;
mod turn;

/// The state of a name with what surrounds it, at some instant.
struct Scene {
    state: NameState,
    name: LockName,
    numbers: Numbers,
    timing: Timing,
    rules: Rules,
    keep: Option<Keep>,
    terms: Terms,
    now: Instant,
}

#[derive(Debug)]
struct NoJitter;

impl Entropy for NoJitter {
    fn bits(&self) -> u64 {
        0
    }

    fn runtime_id(&self) -> RuntimeId {
        RuntimeId::new(Uuid::nil())
    }

    fn secret(&self) -> Secret {
        Secret::new([1, 2])
    }
}

impl Scene {
    fn new() -> Self {
        Self {
            state: NameState::default(),
            name: LockName::new("orders/42").unwrap(),
            numbers: Numbers::new(RuntimeId::new(Uuid::nil()), NoJitter.secret()),
            timing: Timing::default(),
            rules: Rules::default(),
            keep: None,
            terms: Terms::default(),
            now: Instant::at(Duration::from_secs(1)),
        }
    }

    fn with<T>(&mut self, event: impl FnOnce(&mut NameState, &mut Env<'_>) -> T) -> (T, Effects) {
        let Self { state, name, numbers, timing, rules, now, .. } = self;
        let (now, entropy, effects) = (*now, &NoJitter, Effects::default());
        let mode = Mode::Write;
        let mut env = Env { name, mode, now, entropy, numbers, timing, rules, effects };
        (event(state, &mut env), env.effects)
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
    }

    fn join(&mut self) -> Ticket {
        self.join_as(false).0
    }

    fn join_as(&mut self, tries: bool) -> (Ticket, Option<Lead>) {
        match self.come(tries, self.terms).0 {
            Ok(Joined::InLine(ticket, lead)) => (ticket, lead),
            other => panic!("it stands in line, and yet {other:?}"),
        }
    }

    /// A task comes for a lease on some terms.
    fn come(
        &mut self,
        tries: bool,
        terms: Terms,
    ) -> (Result<Joined<TakenToken>, NoLease>, Effects) {
        let keep = self.keep;
        self.with(|state, env| state.join(env, terms, tries, keep))
    }

    fn answer(&mut self, lead: Ticket, answer: AcquireAnswer) -> LeasePoll<TakenToken> {
        let answer = TimedAnswer { sent_at: self.now, result: Ok(answer) };
        self.with(|state, env| state.on_first_reply(env, lead, false, answer)).0
    }

    /// The first task's lease of a turn with tokens from `first` to `last`.
    fn granted(&mut self, lead: Ticket, first: u64, last: u64, contended: bool) -> TakenToken {
        match self.answer(lead, AcquireAnswer::Granted(grant(first, last, 30_000, contended))) {
            Poll::Ready(Ok(taken)) => taken,
            other => panic!("granted, and yet {other:?}"),
        }
    }

    fn queued(&mut self, lead: Ticket) {
        let place = Place { remaining: Duration::from_secs(30), ahead: 2 };
        assert!(self.answer(lead, AcquireAnswer::Queued(place)).is_pending());
    }

    fn release(&mut self, token: u64) -> (Option<TurnRelease>, Effects) {
        self.end(token, None, false)
    }

    /// Releases a lease, or drops its guard; its lock stays closed for so many milliseconds.
    fn end(
        &mut self,
        token: u64,
        closed: Option<u64>,
        dropped: bool,
    ) -> (Option<TurnRelease>, Effects) {
        let until = self.now + Duration::from_secs(20);
        let closed_until = closed.map(|millis| self.now + Duration::from_millis(millis));
        let via = if dropped { ReleaseVia::Drop } else { ReleaseVia::Explicit };
        self.with(|state, env| state.on_release(env, fence(token), until, closed_until, via))
    }

    /// The release of a turn is about to be sent; the id with which the runtime queues anew in it.
    fn send(&mut self, release: &TurnRelease) -> Option<Ticket> {
        let (next, _) = self.with(|state, env| state.on_release_send(env, release.turn));
        next.expect("it is awaited").map(|next| next.id.number())
    }

    /// A release was answered; whether another copy is to be sent.
    fn released(
        &mut self,
        release: &TurnRelease,
        result: Result<ReleaseAnswer, StoreError>,
    ) -> (bool, Effects) {
        let answer = TimedAnswer { sent_at: self.now, result };
        self.with(|state, env| state.on_release_reply(env, release.turn, answer))
    }

    fn poll(&mut self, ticket: Ticket) -> LeasePoll<TakenToken> {
        self.with(|state, env| state.poll(env, ticket, Waker::noop())).0
    }

    /// The token that a task takes.
    fn takes(&mut self, ticket: Ticket) -> u64 {
        match self.poll(ticket) {
            Poll::Ready(Ok(taken)) => taken.fence.get(),
            other => panic!("{ticket} takes nothing: {other:?}"),
        }
    }

    fn waits(&mut self, ticket: Ticket) {
        assert!(self.poll(ticket).is_pending());
    }

    /// A push of a grant that names heartbeat `number`.
    fn push(&mut self, id: u64, granted: &Granted, number: u64) -> Effects {
        let id = self.numbers.acquisition_id(&self.name, id);
        self.with(|state, env| state.on_grant(env, id, granted, number)).1
    }
}

fn fence(token: u64) -> Fence {
    Fence::try_from(token).unwrap()
}

fn grant(first: u64, last: u64, millis: u64, contended: bool) -> Granted {
    let (first, last) = (fence(first), fence(last));
    let remaining = Duration::from_millis(millis);
    Granted { first, last, remaining, contended, regressed: false }
}

/// The release that an event sends.
fn release_of(effects: &Effects) -> TurnRelease {
    effects.release.clone().expect("a release")
}

/// Whether a lease was released, and its holder has nothing to send.
fn is_settled((after, effects): &(Option<TurnRelease>, Effects)) -> bool {
    after.is_none() && effects.settled == Some(ReleaseVia::Explicit)
}

fn sends_nothing(effects: &Effects) -> bool {
    effects.send.is_none() && effects.release.is_none()
}

fn withdrawn(effects: &Effects) -> Vec<Ticket> {
    effects.withdraw.iter().map(|(id, _)| id.number()).collect()
}
