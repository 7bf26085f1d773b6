//! The text of an error has its cause in it. Printing its sources as well repeats nothing.

use std::{error::Error, time::Duration};

use leasehold_core::{
    AcquisitionId, FenceToken, LockName, RuntimeId, StoreError, StoreErrorKind, lease::LossReason,
};
use uuid::Uuid;

use super::*;
use crate::TimingError;

const NAME: &str = "orders/42";
const CAUSE: &str = "the connection broke";

fn lock() -> LockName {
    LockName::new(NAME).unwrap()
}

fn fence() -> FenceToken {
    FenceToken::try_from(7_u64).unwrap()
}

fn cause() -> StoreError {
    StoreError::new(StoreErrorKind::Indeterminate, CAUSE, "try again")
}

fn acquire_errors() -> Vec<AcquireError> {
    let (lock, fence, reason) = (lock(), fence(), LossReason::Expired);
    let waited = Duration::from_millis(1_500);
    let holder = HolderInfo {
        label: "billing".into(),
        lease: AcquisitionId::new(RuntimeId::new(Uuid::nil()), 1),
        fence,
        held_for: waited,
        remaining: waited,
        kept: false,
        this_runtime: false,
    };
    let timeout = |holder, last_error, self_wait| {
        let position = Some(QueuePosition { runtimes: Some(1), tasks: 0 });
        let lock = lock.clone();
        let timeout = WaitTimeout { lock, waited, position, holder, last_error, self_wait };
        AcquireError::Timeout(Box::new(timeout))
    };
    let unavailable = |failed, answers_others| {
        let (lock, error, silent_for) = (lock.clone(), cause(), waited);
        let outage = Unavailable { lock, waited, silent_for, answers_others, failed, error };
        AcquireError::Unavailable(Box::new(outage))
    };
    let kept = HolderInfo { kept: true, ..holder.clone() };
    let here = HolderInfo { this_runtime: true, ..holder.clone() };
    vec![
        timeout(None, None, None),
        timeout(None, Some(cause()), None),
        timeout(Some(holder), None, None),
        timeout(Some(kept), None, None),
        timeout(Some(here), None, Some(SelfWait::WithoutOwner)),
        unavailable(0, false),
        unavailable(9, false),
        unavailable(1, true),
        AcquireError::Lost(LeaseLost { lock: lock.clone(), fence, reason }),
        AcquireError::Store(cause().for_lock(&lock)),
        AcquireError::Options { lock: lock.clone(), option: OptionsError::MaxHold },
        AcquireError::ForeignOwner { lock: lock.clone() },
        AcquireError::TooManyHolds { lock: lock.clone() },
        AcquireError::ShutDown { lock: lock.clone(), draining: false },
        AcquireError::ShutDown { lock: lock.clone(), draining: true },
    ]
}

/// Every variant of every public error of this crate. The matches below tell of one that is missing.
fn all() -> Vec<Box<dyn Error>> {
    let mut all = Vec::<Box<dyn Error>>::new();
    let (fence, reason) = (fence(), LossReason::Gone);
    for error in acquire_errors() {
        match &error {
            AcquireError::Timeout(_)
            | AcquireError::Unavailable(_)
            | AcquireError::Lost(_)
            | AcquireError::Store(_)
            | AcquireError::Options { .. }
            | AcquireError::ForeignOwner { .. }
            | AcquireError::TooManyHolds { .. }
            | AcquireError::ShutDown { .. } => {}
        }
        all.push(Box::new(WithError::<StoreError>::Acquire(error.clone())));
        all.push(Box::new(RunOnceError::<StoreError>::Acquire(error.clone())));
        all.push(Box::new(error));
    }
    let reentered = [
        ReenterError::Lost(LeaseLost { lock: lock(), fence, reason }),
        ReenterError::TooManyHolds { lock: lock() },
        ReenterError::Store(cause().for_lock(&lock())),
    ];
    for error in reentered {
        match &error {
            ReenterError::Lost(_) | ReenterError::TooManyHolds { .. } | ReenterError::Store(_) => {}
        }
        all.push(Box::new(error));
    }
    let released = [
        ReleaseError::Lost(LeaseLost { lock: lock(), fence, reason }),
        ReleaseError::Unconfirmed { lock: lock(), fence, keeps: false, error: cause() },
        ReleaseError::Unconfirmed { lock: lock(), fence, keeps: true, error: cause() },
    ];
    for error in released {
        match &error {
            ReleaseError::Lost(_) | ReleaseError::Unconfirmed { .. } => {}
        }
        let succeeded = SucceedError::from(error.clone());
        match &succeeded {
            SucceedError::Lost(_) | SucceedError::Unconfirmed { .. } => {}
        }
        all.push(Box::new(error));
        all.push(Box::new(succeeded));
    }
    let body = cause().for_lock(&lock());
    let with =
        [WithError::Lost(LeaseLost { lock: lock(), fence, reason }), WithError::Body(body.clone())];
    for error in with {
        match &error {
            WithError::Acquire(_) | WithError::Lost(_) | WithError::Body(_) => {}
        }
        all.push(Box::new(error));
    }
    let ran =
        [RunOnceError::Lost(LeaseLost { lock: lock(), fence, reason }), RunOnceError::Body(body)];
    for error in ran {
        match &error {
            RunOnceError::Acquire(_) | RunOnceError::Lost(_) | RunOnceError::Body(_) => {}
        }
        all.push(Box::new(error));
    }
    let long = OptionsError::Wait { wait: OptionsError::MAX_WAIT * 2 };
    all.push(Box::new(TimingError::Wait(long)));
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
    assert!(all.len() > 50, "{}", all.len());
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
