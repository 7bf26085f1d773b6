use std::{task::Waker, time::Duration};

use leasehold_core::{
    FenceToken, Instant, LockName, RuntimeId, StoreError, StoreErrorKind, Ttl,
    lease::LossReason,
    store::{AcquireAnswer, Granted, Place, ReleaseAnswer, RenewAnswer},
};
use uuid::Uuid;

use super::{
    AfterLease, Answer, Cohort, Effects, Env, Lead, Numbers, Outgoing, Progress, Taken, Ticket,
    TurnId, TurnRelease, phase::Phase,
};
use crate::{seam::Rules, timing::Timing};

/// A cohort with what surrounds it, at some instant.
struct Scene {
    cohort: Cohort,
    name: LockName,
    numbers: Numbers,
    timing: Timing,
    rules: Rules,
    now: Instant,
}

impl Scene {
    fn new() -> Self {
        Self {
            cohort: Cohort::new(),
            name: LockName::new("orders/42").unwrap(),
            numbers: Numbers::new(RuntimeId::new(Uuid::nil())),
            timing: Timing::default(),
            rules: Rules::default(),
            now: Instant::at(Duration::from_secs(1)),
        }
    }

    fn with<T>(&mut self, event: impl FnOnce(&mut Cohort, &Env<'_>) -> T) -> T {
        let Self { cohort, name, numbers, timing, rules, now } = self;
        event(cohort, &Env { name, now: *now, jitter: 0.0, numbers, timing, rules })
    }

    fn pass(&mut self, millis: u64) {
        self.now = self.now + Duration::from_millis(millis);
    }

    fn join(&mut self) -> Ticket {
        self.join_as(false).0
    }

    fn join_as(&mut self, tries: bool) -> (Ticket, Option<Lead>) {
        let join = |cohort: &mut Cohort, env: &Env<'_>| {
            cohort.join::<()>(env, Ttl::default(), tries, Waker::noop()).0
        };
        self.with(join).expect("the task is let in")
    }

    fn answer(&mut self, lead: Ticket, answer: AcquireAnswer) -> Progress<Taken> {
        let answer = Answer { sent_at: self.now, result: Ok(answer) };
        self.with(|cohort, env| cohort.on_first_reply(env, lead, false, answer)).0
    }

    /// The first task's lease of a turn with tokens from `first` to `last`.
    fn granted(&mut self, lead: Ticket, first: u64, last: u64, contended: bool) -> Taken {
        match self.answer(lead, AcquireAnswer::Granted(grant(first, last, 30_000, contended))) {
            Progress::Granted(taken) => taken,
            other => panic!("granted, and yet {other:?}"),
        }
    }

    fn queued(&mut self, lead: Ticket) {
        let place = Place { remaining: Duration::from_secs(30), ahead: 2 };
        assert!(matches!(self.answer(lead, AcquireAnswer::Queued(place)), Progress::Waits));
    }

    fn release(&mut self, token: u64) -> (AfterLease, Effects) {
        self.release_closed(token, None)
    }

    /// Releases a lease whose lock stays closed for so many milliseconds.
    fn release_closed(&mut self, token: u64, millis: Option<u64>) -> (AfterLease, Effects) {
        let until = self.now + Duration::from_secs(20);
        let closed_until = millis.map(|millis| self.now + Duration::from_millis(millis));
        self.with(|cohort, env| cohort.on_release(env, fence(token), until, closed_until, false))
    }

    /// Drops the guard of a lease: nobody waits to hear what became of it.
    fn drop_lease(&mut self, token: u64) -> (AfterLease, Effects) {
        self.drop_closed(token, None)
    }

    /// Drops the guard of a lease whose lock stays closed for so many milliseconds.
    fn drop_closed(&mut self, token: u64, millis: Option<u64>) -> (AfterLease, Effects) {
        let until = self.now + Duration::from_secs(20);
        let closed_until = millis.map(|millis| self.now + Duration::from_millis(millis));
        self.with(|cohort, env| cohort.on_release(env, fence(token), until, closed_until, true))
    }

    /// The release of a turn is about to be sent; the id with which the runtime queues anew in it.
    fn send(&mut self, release: &TurnRelease) -> Option<Ticket> {
        let next = self.with(|cohort, env| cohort.on_release_send(env, release.turn));
        next.expect("it is awaited").map(|next| next.id.number())
    }

    /// A release was answered; whether another copy is to be sent.
    fn released(
        &mut self,
        release: &TurnRelease,
        result: Result<ReleaseAnswer, StoreError>,
    ) -> (bool, Effects) {
        let answer = Answer { sent_at: self.now, result };
        self.with(|cohort, env| cohort.on_release_reply(env, release.turn, answer))
    }

    fn poll(&mut self, ticket: Ticket) -> Progress<Taken> {
        self.with(|cohort, env| cohort.poll(env, ticket, Waker::noop())).0
    }

    /// The token that a task takes.
    fn takes(&mut self, ticket: Ticket) -> u64 {
        match self.poll(ticket) {
            Progress::Granted(taken) => taken.token.get(),
            other => panic!("{ticket} takes nothing: {other:?}"),
        }
    }

    fn waits(&mut self, ticket: Ticket) {
        assert!(matches!(self.poll(ticket), Progress::Waits));
    }

    /// A push of a grant that names heartbeat `number`.
    fn push(&mut self, id: u64, granted: &Granted, number: u64) -> Effects {
        let id = self.numbers.known(id);
        self.with(|cohort, env| cohort.on_grant(env, id, granted, number))
    }
}

fn fence(token: u64) -> FenceToken {
    FenceToken::try_from(token).unwrap()
}

fn grant(first: u64, last: u64, millis: u64, contended: bool) -> Granted {
    let (first, last) = (fence(first), fence(last));
    let remaining = Duration::from_millis(millis);
    Granted { first, last, remaining, contended, regressed: false }
}

fn withdrawn(effects: &Effects) -> Vec<Ticket> {
    effects.withdraw.iter().map(|(id, _)| id.number()).collect()
}

fn release_of(effects: &Effects) -> TurnRelease {
    match &effects.send {
        Some(Outgoing::Release(release)) => *release,
        other => panic!("the turn ends, and yet {other:?} is sent"),
    }
}

#[test]
fn alone_a_turn_is_one_lease_and_its_end_is_the_holders() {
    let mut scene = Scene::new();
    let lead = scene.join();
    let taken = scene.granted(lead, 10, 20, false);
    assert_eq!((taken.token, taken.turn.id().number()), (fence(10), lead));
    let (after, effects) = scene.release(10);
    assert!(matches!(after, AfterLease::Ends(_)));
    assert!(effects.send.is_none());
}

#[test]
fn whoever_drops_a_guard_and_comes_back_queues_with_the_release() {
    let mut scene = Scene::new();
    let lead = scene.join();
    let _ = scene.granted(lead, 10, 25, true);
    let (after, effects) = scene.drop_lease(10);
    let end = release_of(&effects);
    assert!(matches!(after, AfterLease::Dropped));
    let back = scene.join();
    let next = scene.send(&end);
    assert!(next > Some(back), "under a fresh id");
    assert_eq!(scene.send(&end), next, "the same with every copy");
    scene.waits(back);
    let granted = ReleaseAnswer::NextGranted(grant(30, 40, 3000, false));
    let _ = scene.released(&end, Ok(granted));
    assert_eq!(scene.takes(back), 30);
}

#[test]
fn whoever_comes_when_the_release_was_sent_does_not_queue_with_it() {
    let mut scene = Scene::new();
    let lead = scene.join();
    let _ = scene.granted(lead, 10, 25, true);
    let (_, effects) = scene.drop_lease(10);
    let end = release_of(&effects);
    assert_eq!(scene.send(&end), None);
    let late = scene.join();
    assert_eq!(scene.send(&end), None);
    scene.waits(late);
}

#[test]
fn whoever_comes_while_a_lease_is_given_back_asks_as_soon_as_that_is_answered() {
    let mut scene = Scene::new();
    let lead = scene.join();
    let _ = scene.granted(lead, 10, 20, false);
    let (AfterLease::Ends(end), _) = scene.release(10) else { panic!("its holder ends it") };
    let late = scene.join();
    scene.waits(late);
    let (_, effects) = scene.released(&end, Ok(ReleaseAnswer::Released));
    assert!(
        matches!(effects.send, Some(Outgoing::Heartbeat(beat)) if beat.waiter.id.number() > late)
    );
}

#[test]
fn a_release_that_was_refused_is_withdrawn_unless_the_lock_is_to_stay_closed() {
    let refusal = || StoreError::new(StoreErrorKind::Config, "no", "ask");
    for closed in [None, Some(60_000)] {
        let mut scene = Scene::new();
        let lead = scene.join();
        let _ = scene.granted(lead, 10, 20, false);
        let (_, effects) = scene.drop_closed(10, closed);
        let end = release_of(&effects);
        scene.send(&end);
        scene.join();
        let (_, effects) = scene.released(&end, Err(refusal()));
        let withdrawn = withdrawn(&effects);
        assert_eq!(withdrawn, if closed.is_none() { vec![lead] } else { vec![] });
        assert!(scene.with(Cohort::on_timer).0.is_some(), "whoever came later asks");
    }
}

#[test]
fn a_turn_goes_from_task_to_task_in_order_with_a_token_each() {
    let mut scene = Scene::new();
    let [first, second, third] = [scene.join(), scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 20, false);
    scene.waits(second);
    assert!(matches!(scene.release(10).0, AfterLease::Settled));
    scene.waits(third);
    assert_eq!(scene.takes(second), 11);
    assert!(matches!(scene.release(11).0, AfterLease::Settled));
    assert_eq!(scene.takes(third), 12);
    assert!(matches!(scene.release(10).0, AfterLease::WasOver), "the first lease is long over");
}

#[test]
fn while_others_wait_only_those_are_served_who_waited_when_the_turn_began() {
    let mut scene = Scene::new();
    let [first, second] = [scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 25, true);
    let late = scene.join();
    let _ = scene.release(10);
    assert_eq!(scene.takes(second), 11);
    let (_, effects) = scene.release(11);
    let next = scene.send(&release_of(&effects)).expect("the late one queues anew");
    assert!(next > late, "under a fresh id");
    scene.waits(late);
}

#[test]
fn a_turn_ends_when_its_tokens_or_its_time_are_used_up() {
    for (last, millis) in [(10, 0), (2000, 11)] {
        let mut scene = Scene::new();
        let [first, second] = [scene.join(), scene.join()];
        scene.granted(first, 10, last, false);
        scene.pass(millis);
        let (_, effects) = scene.release(10);
        assert!(scene.send(&release_of(&effects)).is_some());
        scene.waits(second);
    }
}

#[test]
fn an_offer_that_is_cancelled_goes_to_the_next_task_and_its_token_is_spent() {
    let mut scene = Scene::new();
    let [first, second, third] = [scene.join(), scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 20, false);
    let _ = scene.release(10);
    let _ = scene.with(|cohort, env| cohort.leave(env, second));
    assert_eq!(scene.takes(third), 12);
}

#[test]
fn an_offer_that_nobody_takes_ends_the_turn_and_sends_the_task_away() {
    let mut scene = Scene::new();
    let [first, second] = [scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 20, false);
    let _ = scene.release(10);
    scene.pass(1500);
    let (_, effects) = scene.with(Cohort::on_timer);
    assert!(scene.send(&release_of(&effects)).is_none());
    assert!(matches!(scene.poll(second), Progress::Dismissed));
}

#[test]
fn whoever_leaves_a_place_last_takes_it_along_for_good() {
    let mut scene = Scene::new();
    let lead = scene.join();
    scene.queued(lead);
    let effects = scene.with(|cohort, env| cohort.leave(env, lead));
    assert_eq!(withdrawn(&effects), [lead]);
    assert!(scene.cohort.is_done());
    let effects = scene.push(lead, &grant(10, 20, 3000, false), 1);
    assert_eq!(withdrawn(&effects), [lead], "a grant that crossed it");
}

#[test]
fn a_turn_begins_once_however_often_it_is_told() {
    let mut scene = Scene::new();
    let lead = scene.join();
    scene.queued(lead);
    let granted = grant(10, 20, 3000, false);
    let _ = scene.push(lead, &granted, 1);
    assert_eq!(scene.takes(lead), 10);
    let again = scene.join();
    let effects = scene.push(lead, &granted, 1);
    assert!(effects.withdraw.is_empty() && effects.wake.is_none());
    scene.waits(again);
}

#[test]
fn a_push_counts_from_its_heartbeat_and_one_that_is_gone_costs_no_place() {
    let mut scene = Scene::new();
    let lead = scene.join();
    scene.queued(lead);
    scene.pass(3100);
    let effects = scene.push(lead, &grant(10, 20, 3000, false), 1);
    let Some(Outgoing::Confirm(doubtful)) = effects.send else { panic!("it is confirmed first") };
    scene.waits(lead);
    let answer = Answer { sent_at: scene.now, result: Ok(RenewAnswer::Gone) };
    let _ = scene.with(|cohort, env| cohort.on_confirmation(env, doubtful, answer));
    let beat = scene.with(Cohort::on_timer).0.expect("it asks again at once");
    assert_eq!(beat.waiter.id.number(), lead, "under the same id");
}

#[test]
fn what_follows_a_release_counts_from_the_copy_that_was_answered() {
    let mut scene = Scene::new();
    let [first, second] = [scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 10, false);
    let (_, effects) = scene.release(10);
    let end = release_of(&effects);
    let lost = StoreError::new(StoreErrorKind::Indeterminate, "nothing was heard", "repeat it");
    assert!(scene.send(&end).is_some());
    let (again, _) = scene.released(&end, Err(lost));
    assert!(again);
    scene.pass(100);
    let sent_at = scene.now;
    let granted = ReleaseAnswer::NextGranted(grant(30, 40, 3000, false));
    let _ = scene.released(&end, Ok(granted));
    let Progress::Granted(taken) = scene.poll(second) else { panic!("it is the second's turn") };
    assert_eq!(taken.until, sent_at + Duration::from_millis(2970));
}

#[test]
fn a_lock_that_stays_closed_ends_the_turn_and_whoever_waits_asks_anew_after_that() {
    let mut scene = Scene::new();
    let [first, second] = [scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 20, false);
    let (after, _) = scene.release_closed(10, Some(5_000));
    let AfterLease::Ends(end) = after else {
        panic!("its holder hears what comes of it: {after:?}")
    };
    assert!(end.closed_until.is_some());
    scene.waits(second);
    let kept = ReleaseAnswer::Kept { remaining: Duration::from_secs(5) };
    let (again, effects) = scene.released(&end, Ok(kept));
    assert!(!again && effects.withdraw.is_empty());
    scene.waits(second);
    let Some(Outgoing::Heartbeat(beat)) = effects.send else { panic!("it asks at once") };
    assert!(beat.waiter.id.number() > second, "under a fresh id");
}

#[test]
fn a_lock_whose_time_is_over_goes_on_in_memory() {
    let mut scene = Scene::new();
    let [first, second] = [scene.join(), scene.join()];
    let _ = scene.granted(first, 10, 20, false);
    assert!(matches!(scene.release_closed(10, Some(0)).0, AfterLease::Settled));
    assert_eq!(scene.takes(second), 11);
}

#[test]
fn whoever_gave_a_kept_lock_back_and_looks_no_more_is_replaced_with_the_same_command() {
    let mut scene = Scene::new();
    let first = scene.join();
    let _ = scene.granted(first, 10, 20, false);
    let (AfterLease::Ends(end), _) = scene.release_closed(10, Some(60_000)) else { panic!() };
    scene.pass(3_000);
    let (_, effects) = scene.with(Cohort::on_timer);
    assert_eq!(release_of(&effects).closed_until, end.closed_until);
}

#[test]
fn a_loss_takes_nothing_back_that_is_to_stay_closed() {
    for (closed_for, taken_back) in [(None, vec![1]), (Some(Duration::from_secs(60)), vec![])] {
        let mut scene = Scene::new();
        let first = scene.join();
        let taken = scene.granted(first, 10, 20, false);
        if let Phase::Turn(turn) = &mut scene.cohort.phase {
            turn.unanswered.lose(true);
        }
        let closed_until = closed_for.map(|time| scene.now + time);
        let effects = scene.with(|cohort, env| {
            cohort.on_lost(env, TurnId::of(&taken.turn), LossReason::Shutdown, closed_until)
        });
        assert_eq!(withdrawn(&effects), taken_back);
    }
}

/// A store that lost its data grants the lock once more to a late copy of an old question.
#[test]
fn an_id_that_had_a_lease_is_never_granted_another() {
    let mut scene = Scene::new();
    let lead = scene.join();
    scene.granted(lead, 10, 20, false);
    let id = scene.numbers.known(lead);
    let mut heard = |first| {
        let result = Ok(AcquireAnswer::Granted(grant(first, first, 1_000, false)));
        let answer = Answer { sent_at: scene.now, result };
        scene.with(|cohort, env| cohort.on_reply(env, id, answer))
    };
    assert!(heard(10).withdraw.is_empty(), "the same grant is no news");
    assert!(heard(5).withdraw.is_empty(), "an older one ran out before this one");
    assert_eq!(withdrawn(&heard(30)), [lead]);
}

/// A grant that was ended by force before its answer came is no reason for a try to wait.
#[test]
fn a_try_whose_grant_is_gone_already_fails_and_leaves_nothing() {
    let mut scene = Scene::new();
    let (lead, _) = scene.join_as(true);
    let id = scene.numbers.known(lead);
    let gone = scene.with(|cohort, env| cohort.on_gone(env, TurnId { id, first: fence(10) }));
    assert!(gone.withdraw.is_empty());
    let result = Ok(AcquireAnswer::Granted(grant(10, 10, 30_000, false)));
    let answer = Answer { sent_at: scene.now, result };
    let (asked, effects) = scene.with(|cohort, env| cohort.on_first_reply(env, lead, true, answer));
    assert!(matches!(asked, Progress::Failed(_)), "{asked:?}");
    assert_eq!(withdrawn(&effects), [lead]);
    assert!(scene.cohort.is_done());
}

/// The failure of an old heartbeat comes when the next one is almost due: that is not put off.
#[test]
fn a_late_failure_puts_no_heartbeat_off() {
    let mut scene = Scene::new();
    let lead = scene.join();
    scene.queued(lead);
    let failure = || StoreError::new(StoreErrorKind::Indeterminate, "nothing was heard", "wait");
    for round in 0..8 {
        let due = scene.with(|cohort, env| cohort.look_at(env)).expect("a place is asked for");
        scene.now = due.max(scene.now);
        let sent_at = scene.now;
        let (beat, _) = scene.with(Cohort::on_timer);
        let id = beat.expect("a heartbeat is due").waiter.id;
        scene.pass(700);
        let answer = Answer { sent_at, result: Err(failure()) };
        let _ = scene.with(|cohort, env| cohort.on_reply(env, id, answer));
        let next = scene.with(|cohort, env| cohort.look_at(env)).expect("a place is asked for");
        let after = next.saturating_since(sent_at);
        assert!(after <= Duration::from_millis(750), "round {round}: {after:?}");
    }
}
