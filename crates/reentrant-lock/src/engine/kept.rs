use std::{collections::BTreeMap, pin::pin, sync::Arc, time::Duration};

use futures_util::stream::{self, StreamExt};
use leasehold_core::{Clock, Instant, LockName, Mode, Mutex, outage::WatchedStore, store::Release};

use crate::{durations::STAMP, queue::TurnId};

use super::{executor::Executor, names::Side};

/// The names whose turns are kept: they are idle, or were idle and are held again. If there are too
/// many, the turn ends that was idle least recently.
#[derive(Debug, Default)]
pub(super) struct KeptTurns(Mutex<IdleNames>);

#[derive(Debug, Default)]
struct IdleNames {
    names: BTreeMap<IdleSince, Side>,
    /// The last stamp, so that each stamp is a new one.
    last: IdleSince,
}

pub(super) type IdleSince = Instant;

impl KeptTurns {
    const MAX: usize = 16 * 1024;

    /// A turn has become idle. Returns a turn that is to end, if there are too many.
    pub(super) fn on_idle(
        &self,
        now: Instant,
        stamp: &mut Option<IdleSince>,
        (name, mode): (&LockName, Mode),
    ) -> Option<(IdleSince, Side)> {
        if stamp.is_some_and(|at| now < at + STAMP) {
            return None;
        }
        let mut state = self.0.lock();
        let new = now.max(state.last + Duration::from_nanos(1));
        state.last = new;
        let old = stamp.replace(new).and_then(|old| state.names.remove(&old));
        state.names.insert(new, old.unwrap_or_else(|| (name.clone(), mode)));
        let is_too_many = state.names.len() > Self::MAX;
        is_too_many.then(|| state.names.pop_first()).flatten()
    }

    pub(super) fn on_end(&self, stamp: IdleSince) {
        let name = self.0.lock().names.remove(&stamp);
        drop(name);
    }
}

/// Releases the turns that are idle when their runtime is dropped, which does not wait for it; each
/// release takes `timeout` at most. The executor keeps a thread of its own until all is sent.
pub(super) async fn release_idle(
    idle: Vec<(LockName, TurnId)>,
    store: Arc<WatchedStore>,
    clock: Arc<dyn Clock>,
    timeout: Duration,
    _executor: Executor,
) {
    /// How many are sent at a time.
    const AT_ONCE: usize = 64;
    let releases = stream::iter(idle).map(async |(name, TurnId { id, first: fence })| {
        let release = Release { name, id, fence, keep: None, next: None };
        let now = clock.now();
        let answer = store.ask(now, release, now + timeout).await;
        !answer.is_err_and(|error| error.kind().is_transient())
    });
    let mut answers = pin!(releases.buffer_unordered(AT_ONCE));
    let mut unanswered = 0;
    while let Some(is_answered) = answers.next().await {
        unanswered = if is_answered { 0 } else { unanswered + 1 };
        if unanswered == AT_ONCE {
            // An outage: the leases end with their ttl.
            break;
        }
    }
}
