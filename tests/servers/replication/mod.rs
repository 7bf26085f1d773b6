//! What `Replication` promises: a lease is believed when so many replicas have it, and not before.

mod cluster;
mod grants;
mod lanes;
mod reconnected;
mod refusals;
mod renewals;
mod written;

use std::time::Duration;

use leasehold::{Guard, LockRuntime, LockRuntimeBuilder, error::AcquireError, redis::Replication};
use leasehold_testkit::{LockText, RedisServer};

use crate::support::{patient, wait};

/// One replica, within half a second.
fn one() -> Replication {
    Replication::wait(1, Duration::from_millis(500)).unwrap()
}

/// One replica; a busy machine has time to answer.
fn one_in_time() -> Replication {
    Replication::wait(1, Duration::from_secs(10)).unwrap()
}

fn asking(replication: Replication) -> LockRuntimeBuilder {
    patient::builder().replication(replication)
}

async fn connect(server: &RedisServer, replication: Replication) -> LockRuntime {
    asking(replication).connect(server.url()).await.expect("the server answers")
}

fn holds(server: &RedisServer, name: &str) -> bool {
    let text = LockText::find(server, &format!("leasehold:{{{name}}}:lease"));
    text.is_some_and(|text| text.lease.is_some())
}

/// Asserts that an acquire failed because too few replicas have what was granted.
fn assert_unacknowledged<T: std::fmt::Debug>(outcome: Result<T, AcquireError>) {
    match outcome {
        Err(AcquireError::Unavailable(why)) => {
            assert!(why.error.is_unacknowledged(), "{why}");
            assert!(why.answers_others, "the server answers: {why}");
        }
        other => panic!("too few replicas have it, and yet {other:?}"),
    }
}

/// Returns when a lease is renewed: what it has left grows.
async fn until_renewed(guard: &Guard) {
    let mut left = guard.remaining();
    let has_grown = || guard.remaining() > std::mem::replace(&mut left, guard.remaining());
    wait::until("it is renewed", has_grown).await;
}
