//! What each script does, as a function of a row, the time and the command.

use std::time::Duration;

use super::{
    row::{CounterRow, LeaseRow, Row},
    time::ServerTime,
};
use crate::{
    store::{
        Acquire, AcquireAnswer, FencePolicy, FenceSettings, ForceRelease, ForceReleaseAnswer,
        Granted, Hold, HoldAnswer, Inspection, LeaseRecord, Release, ReleaseAnswer, RenewAnswer,
        Renewal, StoreError, StoreErrorKind, Withdraw, WithdrawAnswer, whole_millis,
    },
    words::FenceToken,
};

/// How long a withdrawn acquisition is remembered; the scripts are told the same.
pub(crate) const WITHDRAWAL_MARK: Duration = Duration::from_secs(30);

/// A watermark further ahead of the clock than this is some clock's mistake.
const WATERMARK_LEAD: u64 = 24 * 60 * 60 * 1_000_000;

pub(super) fn acquire(
    row: &mut Row,
    now: ServerTime,
    settings: FenceSettings,
    command: &Acquire<'_>,
) -> Result<AcquireAnswer, StoreError> {
    if let Some(lease) = row.lease(now) {
        let remaining = whole_millis(now.until(lease.ends));
        return Ok(if lease.id == command.id && !lease.kept {
            AcquireAnswer::Granted(Granted {
                first: lease.fence,
                last: lease.fence,
                remaining,
                regressed: false,
            })
        } else {
            AcquireAnswer::Busy { remaining }
        });
    }
    if row.is_withdrawn(now, command.id) {
        return Ok(AcquireAnswer::Withdrawn);
    }
    let counted = row.counted(now);
    let seen = command.watermark.map_or(0, FenceToken::get);
    let seen = if seen > now.micros().saturating_add(WATERMARK_LEAD) { 0 } else { seen };
    let Some(fence) = next_fence(counted.max(seen), now, settings.policy) else {
        return Err(exhausted().for_lock(command.name));
    };
    row.set_counter(Some(counter(fence, now, settings)));
    row.set_lease(Some(LeaseRow {
        id: command.id,
        fence,
        holds: 1,
        hold_number: 0,
        label: command.label.clone(),
        since: now,
        kept: false,
        ends: now.after(command.ttl.get()),
    }));
    let remaining = command.ttl.get();
    let regressed = seen > counted;
    Ok(AcquireAnswer::Granted(Granted { first: fence, last: fence, remaining, regressed }))
}

pub(super) fn hold(row: &mut Row, now: ServerTime, command: &Hold<'_>) -> HoldAnswer {
    let Some(lease) = row.live_lease(now, command.id, command.fence) else {
        return HoldAnswer::Gone;
    };
    if command.update.number > lease.hold_number {
        lease.ends = lease.ends.max(now.after(command.ttl.get()));
        lease.holds = command.update.count.get();
        lease.hold_number = command.update.number;
    }
    HoldAnswer::Held { remaining: whole_millis(now.until(lease.ends)) }
}

pub(super) fn release(row: &mut Row, now: ServerTime, command: &Release<'_>) -> ReleaseAnswer {
    let Some(lease) =
        row.lease(now).filter(|lease| lease.id == command.id && lease.fence == command.fence)
    else {
        return ReleaseAnswer::Gone;
    };
    if lease.kept {
        return ReleaseAnswer::Kept { remaining: whole_millis(now.until(lease.ends)) };
    }
    let Some(keep) = command.keep_in_range() else {
        row.set_lease(None);
        return ReleaseAnswer::Released;
    };
    lease.kept = true;
    lease.holds = 0;
    lease.ends = now.after(keep);
    ReleaseAnswer::Kept { remaining: keep }
}

pub(super) fn renew(row: &mut Row, now: ServerTime, renewal: &Renewal) -> RenewAnswer {
    let Some(lease) = row.live_lease(now, renewal.id, renewal.fence) else {
        return RenewAnswer::Gone;
    };
    lease.ends = lease.ends.max(now.after(renewal.ttl.get()));
    RenewAnswer::Renewed { remaining: whole_millis(now.until(lease.ends)) }
}

pub(super) fn withdraw(row: &mut Row, now: ServerTime, command: &Withdraw<'_>) -> WithdrawAnswer {
    let ended_grant = row.lease(now).is_some_and(|lease| lease.id == command.id && !lease.kept);
    if ended_grant {
        row.set_lease(None);
    }
    row.mark_withdrawn(now, command.id, now.after(WITHDRAWAL_MARK));
    WithdrawAnswer { ended_grant }
}

pub(super) fn inspect(row: &mut Row, now: ServerTime) -> Inspection {
    let counted = row.counted(now);
    match row.lease(now) {
        None => Inspection::Free { last_fence: FenceToken::try_from(counted).ok() },
        Some(lease) => Inspection::Held(LeaseRecord::new(
            lease.id,
            lease.fence,
            lease.holds,
            whole_millis(now.until(lease.ends)),
            lease.label.to_string(),
            lease.since.until(now),
            lease.kept,
        )),
    }
}

pub(super) fn force_release(
    row: &mut Row,
    now: ServerTime,
    settings: FenceSettings,
    command: &ForceRelease<'_>,
) -> ForceReleaseAnswer {
    let inspected = |lease: &mut LeaseRow| lease.id == command.id && lease.fence == command.fence;
    if !row.lease(now).is_some_and(inspected) {
        return ForceReleaseAnswer::Changed;
    }
    let last = row.counted(now).max(command.fence.get());
    let fence = next_fence(last, now, settings.policy);
    row.set_lease(None);
    if let Some(fence) = fence {
        row.set_counter(Some(counter(fence, now, settings)));
    }
    ForceReleaseAnswer::Ended { fence }
}

/// The token after `last`, raised to the clock where the policy says so.
fn next_fence(last: u64, now: ServerTime, policy: FencePolicy) -> Option<FenceToken> {
    let next = last.saturating_add(1);
    let next = match policy {
        FencePolicy::TimeFloor => next.max(now.micros()),
        FencePolicy::Counter => next,
    };
    FenceToken::try_from(next).ok()
}

fn counter(fence: FenceToken, now: ServerTime, settings: FenceSettings) -> CounterRow {
    let ends = match settings.policy {
        FencePolicy::TimeFloor => Some(now.after(settings.retention)),
        FencePolicy::Counter => None,
    };
    CounterRow { last: fence.get(), ends }
}

/// No token is left above the last one.
pub(crate) fn exhausted() -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        "the fence counter has reached its greatest value, so no newer token can be granted",
        "find out who wrote the counter, delete its key, and reset the watermarks of the gates that saw its tokens",
    )
}
