//! What a run tells while it waits for its locks: a server that is full and a lock that others hold look
//! alike from outside.

use std::{pin::pin, time::Duration};

use leasehold::{
    LockName, LockRuntime,
    error::{InspectError, StoreError},
    store::{Inspection, LeaseRecord},
    time::{Clock, SystemClock},
};
use tokio::select;

use crate::{
    args::RunArgs,
    durations::{EVERY, FIRST_WORD, NEXT_WORD},
    output::tell,
    words::short,
};

/// The wait of a run that sets none.
const DEFAULT_WAIT: Duration = Duration::from_secs(30);

/// Awaits locks that were asked for. Tells why that takes long, and again when the reason changes.
pub(super) async fn telling<T>(
    locks: &LockRuntime,
    args: &RunArgs,
    names: &[LockName],
    asking: impl Future<Output = T>,
) -> T {
    let mut asking = pin!(asking);
    let (began, mut pause, mut told) = (SystemClock.now(), FIRST_WORD, None);
    loop {
        let look = async {
            SystemClock.sleep_until(SystemClock.now() + pause).await;
            why(locks, names).await
        };
        let why = select! {
            biased;
            done = &mut asking => return done,
            why = look => why,
        };
        pause = NEXT_WORD;
        let waited = SystemClock.now().saturating_since(began);
        let (Some(Why { cause, text }), Some(how_long)) = (why, how_long(args, waited)) else {
            continue;
        };
        if told.as_ref() != Some(&cause) {
            tell(&format!("still waiting{how_long}: {text}"));
            told = Some(cause);
        }
    }
}

/// For how long a run waits that has waited for some time; `None` if its end is near, which tells more.
fn how_long(args: &RunArgs, waited: Duration) -> Option<String> {
    if args.wait_forever {
        return Some(", without a limit".into());
    }
    // These do not wait for others.
    if args.tries || args.once.is_some() {
        return Some(String::new());
    }
    let rest = args.wait.unwrap_or(DEFAULT_WAIT).saturating_sub(waited);
    (rest >= EVERY).then(|| format!(", for another {}", short(rest)))
}

/// Why locks cannot be had now.
struct Why {
    /// What stays the same as time passes.
    cause: String,
    text: String,
}

impl Why {
    fn failure(error: &StoreError) -> Self {
        // A rest of a time, or a port.
        let cause = error.what().replace(|c: char| c.is_ascii_digit() || c == '.', "");
        Self { cause, text: error.to_string() }
    }

    fn taken(name: &LockName, lease: &LeaseRecord) -> Self {
        Self { cause: format!("{name:?} {}", lease.id), text: taken(name, lease) }
    }
}

async fn why(locks: &LockRuntime, names: &[LockName]) -> Option<Why> {
    // A full server answers a look: what commands have heard comes first.
    if let Some(error) = locks.health().error {
        return Some(Why::failure(&error));
    }
    for name in names {
        match locks.inspect(name).await {
            // Of several locks, some may be held here already.
            Ok(Inspection::Held(lease)) if lease.id.runtime() != locks.id() => {
                return Some(Why::taken(name, &lease));
            }
            Err(InspectError::Store(error)) => return Some(Why::failure(&error)),
            _ => {}
        }
    }
    None
}

/// Says who has a lock.
pub(super) fn taken(name: &LockName, lease: &LeaseRecord) -> String {
    let (label, time, fence) = (&lease.label, short(lease.held_for), lease.fence);
    let state = if lease.kept {
        let left = short(lease.remaining);
        format!("is kept closed for another {left} after a hold by {label} that began {time} ago")
    } else {
        format!("is not free: {label} has held it for {time}")
    };
    format!("lock {name:?} {state} (fence {fence})")
}
