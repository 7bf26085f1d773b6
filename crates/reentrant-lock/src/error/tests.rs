//! The text of an error has its cause in it. Printing its sources as well repeats nothing.

use std::{error::Error, time::Duration};

use leasehold_core::{
    AcquisitionId, Fence, Instant, LockName, RuntimeId, StoreError, StoreErrorKind,
    lease::{HeardEnd, LossReason},
};
use uuid::Uuid;

use super::*;
use crate::{Certainty, Cycle, CycleStep};

const NAME: &str = "orders/42";
const CAUSE: &str = "the connection broke";

fn lock() -> LockName {
    LockName::new(NAME).unwrap()
}

fn fence() -> Fence {
    Fence::try_from(7_u64).unwrap()
}

fn cause() -> StoreError {
    StoreError::new(StoreErrorKind::Indeterminate, CAUSE, "try again")
}

fn lost() -> LeaseLost {
    LeaseLost { lock: lock(), fence: fence(), reason: LossReason::Gone, expiry: None }
}

fn acquire_errors() -> Vec<AcquireError> {
    let (lock, fence) = (lock(), fence());
    let waited = Duration::from_millis(1_500);
    let holder = HolderInfo {
        label: "billing".into(),
        lease: AcquisitionId::new(RuntimeId::new(Uuid::nil()), 1),
        fence,
        held_for: waited,
        remaining: waited,
        kept: false,
        this_runtime: false,
        unrenewed_for: None,
    };
    let timeout = |holder, self_wait| {
        let position = Some(QueuePosition { runtimes: Some(1), tasks: 0 });
        let lock = lock.clone();
        let cycle = None;
        let timeout = WaitTimeout { lock, waited, position, holder, self_wait, cycle };
        AcquireError::Timeout(Box::new(timeout))
    };
    let in_a_cycle = {
        let AcquireError::Timeout(mut timeout) = timeout(None, None) else { unreachable!() };
        let other = LockName::new("orders/43").unwrap();
        let step = |holds: &LockName, waits_for: &LockName| CycleStep {
            runtime: RuntimeId::new(Uuid::nil()),
            label: "billing".into(),
            holds: holds.clone(),
            waits_for: waits_for.clone(),
        };
        let steps = vec![step(&other, &lock), step(&lock, &other)];
        timeout.cycle = Some(Cycle { certainty: Certainty::Certain, steps });
        AcquireError::Timeout(timeout)
    };
    let unavailable = |failed, answers_others, error| {
        let (lock, silent_for) = (lock.clone(), waited);
        let outage = Unavailable { lock, waited, silent_for, answers_others, failed, error };
        AcquireError::Unavailable(Box::new(outage))
    };
    let kept = HolderInfo { kept: true, ..holder.clone() };
    let silent = HolderInfo { unrenewed_for: Some(waited * 2), ..holder.clone() };
    let here = HolderInfo { this_runtime: true, ..holder.clone() };
    vec![
        timeout(None, None),
        in_a_cycle,
        timeout(Some(holder), None),
        timeout(Some(kept), None),
        timeout(Some(silent), None),
        timeout(Some(here), Some(SelfWait::WithoutOwner)),
        unavailable(0, false, cause()),
        unavailable(9, false, cause()),
        unavailable(1, true, cause()),
        unavailable(9, true, cause()),
        unavailable(1, true, cause().as_answer()),
        unavailable(9, true, cause().as_answer()),
        AcquireError::Lost(lost()),
        AcquireError::Store(cause().for_lock(&lock)),
        AcquireError::Options { lock: lock.clone(), option: OptionsError::MaxHold },
        AcquireError::ForeignOwner { lock: lock.clone() },
        AcquireError::WouldDeadlock { lock: lock.clone() },
        AcquireError::TooManyHolds { lock: lock.clone() },
        AcquireError::ShutDown { lock: lock.clone(), draining: false },
        AcquireError::ShutDown { lock: lock.clone(), draining: true },
    ]
}

/// Adds errors of one type to a list; it does not compile if the pattern lacks a variant.
macro_rules! add {
    ($all:ident, $errors:expr, $variants:pat) => {
        for error in $errors {
            match &error {
                $variants => {}
            }
            $all.push(Box::new(error));
        }
    };
}

/// Every variant of every public error of this crate.
fn all() -> Vec<Box<dyn Error>> {
    let mut all = Vec::<Box<dyn Error>>::new();
    let acquire = acquire_errors();
    add!(all, acquire.clone().into_iter().map(WithError::<StoreError>::Acquire), _);
    add!(
        all,
        acquire,
        AcquireError::Timeout(_)
            | AcquireError::Unavailable(_)
            | AcquireError::Lost(_)
            | AcquireError::Store(_)
            | AcquireError::Options { .. }
            | AcquireError::ForeignOwner { .. }
            | AcquireError::WouldDeadlock { .. }
            | AcquireError::TooManyHolds { .. }
            | AcquireError::ShutDown { .. }
    );
    let body = cause().for_lock(&lock());
    let reenter = [
        ReenterError::Lost(lost()),
        ReenterError::TooManyHolds { lock: lock() },
        ReenterError::Store(body.clone()),
    ];
    add!(
        all,
        reenter,
        ReenterError::Lost(_) | ReenterError::TooManyHolds { .. } | ReenterError::Store(_)
    );
    let unconfirmed = |stays_closed| {
        let (lock, fence, error) = (lock(), fence(), cause());
        ReleaseError::Unconfirmed { lock, fence, stays_closed, error }
    };
    let release = [ReleaseError::Lost(lost()), unconfirmed(false), unconfirmed(true)];
    add!(all, release, ReleaseError::Lost(_) | ReleaseError::Unconfirmed { .. });
    let with = [WithError::Lost(lost()), WithError::Body(body)];
    add!(all, with, WithError::Acquire(_) | WithError::Lost(_) | WithError::Body(_));
    let long = OptionsError::Wait { wait: OptionsError::MAX_WAIT * 2 };
    all.push(Box::new(long));
    all
}

/// What a reader sees who prints an error with its sources.
fn joined(error: &dyn Error) -> String {
    let mut text = error.to_string();
    let mut source = error.source();
    while let Some(error) = source {
        text = format!("{text}: {error}");
        source = error.source();
    }
    text
}

#[test]
fn nothing_is_told_twice() {
    let all = all();
    assert!(all.len() > 40, "{}", all.len());
    for error in &all {
        let text = joined(&**error);
        for words in [NAME, CAUSE, "try again"] {
            assert!(text.matches(words).count() <= 1, "{words:?} twice: {text}");
        }
    }
}

/// Without its sources an error lacks nothing: logs print its text alone.
#[test]
fn the_text_alone_tells_the_lock_and_the_cause() {
    for error in &all() {
        let (alone, joined) = (error.to_string(), joined(&**error));
        for words in [NAME, CAUSE] {
            assert_eq!(alone.contains(words), joined.contains(words), "{words:?}: {alone}");
        }
    }
}

/// What a server refuses for good is not repeated, so nothing is promised of it.
#[test]
fn a_release_that_was_refused_for_good_promises_nothing() {
    for keeps in [false, true] {
        for (kind, is_repeated) in
            [(StoreErrorKind::Config, false), (StoreErrorKind::Definite, true)]
        {
            let (lock, fence) = (lock(), fence());
            let error = StoreError::new(kind, CAUSE, "try again");
            let text =
                ReleaseError::Unconfirmed { lock, fence, stays_closed: keeps, error }.to_string();
            assert_eq!(text.contains("once the server has the release"), is_repeated, "{text}");
            assert!(text.contains("when the ttl ends"), "{text}");
        }
    }
}

#[test]
fn the_errors_of_two_withs_are_one() {
    type Two = WithError<WithError<u8>>;
    assert!(matches!(Two::Body(WithError::Body(7)).flatten(), WithError::Body(7)));
    assert!(matches!(Two::Lost(lost()).flatten(), WithError::Lost(_)));
    let reentry = WithError::Acquire(AcquireError::Lost(lost()));
    assert!(matches!(Two::Body(reentry).flatten(), WithError::Lost(_)));
    let lock = AcquireError::TooManyHolds { lock: lock() };
    let refused = Two::Body(WithError::Acquire(lock)).flatten();
    assert!(matches!(refused, WithError::Acquire(AcquireError::TooManyHolds { .. })));
}

#[test]
fn a_client_is_told_whether_and_when_to_try_again() {
    use AcquireError as E;
    for error in acquire_errors() {
        let (status, after) = match &error {
            E::Timeout(timeout) if timeout.holder.as_ref().is_some_and(|holder| holder.kept) => {
                (409, Some(1_500)) // when the lock opens
            }
            E::Timeout(_) => (409, Some(1_000)),
            E::Unavailable(_) => (503, Some(5_000)),
            E::ShutDown { .. } => (503, Some(1_000)),
            _ => (500, None),
        };
        assert_eq!(error.status(), status, "{error}");
        assert_eq!(error.retry_after(), after.map(Duration::from_millis), "{error}");
        let with = WithError::<u8>::Acquire(error);
        assert_eq!(
            (with.status(), with.retry_after()),
            (Some(status), after.map(Duration::from_millis))
        );
    }
    let (lost, body) = (WithError::<u8>::Lost(lost()), WithError::Body(7_u8));
    assert_eq!((lost.status(), lost.retry_after()), (Some(500), None));
    assert_eq!((body.status(), body.retry_after()), (None, None));
}

#[cfg(feature = "axum")]
#[test]
fn an_answer_has_the_status_and_when_to_try_again() {
    use axum_core::response::{IntoResponse, Response};

    let told = |response: Response| {
        let after = response.headers().get("retry-after").map(|value| value.to_str().unwrap());
        (response.status().as_u16(), after.map(str::to_owned))
    };
    for error in acquire_errors() {
        let whole = error.retry_after().map(|after| after.as_millis().div_ceil(1_000).to_string());
        let expected = (error.status(), whole);
        assert_eq!(told(error.clone().into_response()), expected, "{error}");
        assert_eq!(told(WithError::<&str>::Acquire(error).into_response()), expected);
    }
    assert_eq!(told(WithError::<&str>::Lost(lost()).into_response()), (500, None));
    let own = Response::new(axum_core::body::Body::empty());
    assert_eq!(told(WithError::Body(own).into_response()), (200, None));
}

/// A lease cannot be silent for longer than it exists: what was heard was that of the holder before.
#[test]
fn a_holder_that_has_just_come_is_not_told_as_silent() {
    let at = |seconds| Instant::at(Duration::from_secs(seconds));
    let heard = HeardEnd::new(at(0), Duration::from_secs(30));
    let timeout = acquire_errors().into_iter().find_map(|error| match error {
        AcquireError::Timeout(timeout) => timeout.holder,
        _ => None,
    });
    let holder = HolderInfo { remaining: Duration::from_secs(9), ..timeout.unwrap() };
    let silent = |held_for| {
        let holder = HolderInfo { held_for: Duration::from_secs(held_for), ..holder.clone() };
        holder.heard(Some(heard), at(21)).unrenewed_for
    };
    assert_eq!(silent(60), Some(Duration::from_secs(21)));
    assert_eq!(silent(3), None);
}
