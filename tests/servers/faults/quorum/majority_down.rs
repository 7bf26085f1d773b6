use std::time::Duration;

use leasehold::{
    error::AcquireError,
    time::{Clock, SystemClock},
};

use super::{
    naive_quorum::NaiveQuorum,
    scene::{self, NAME, TRIES},
};
use crate::{
    faults::server::{
        scene::{connect, renewed, run, take},
        two_believers,
    },
    support::{matrix::row, wait},
};

row! {
    majority_down: protected, control;
    fault: "two of three servers hang under a holder",
    right: "nothing is granted, as an outage; the holder is told before anybody else has the lock",
    control: "a client that takes the grant of the one server that answers",
}

const TTL: Duration = Duration::from_secs(2);

fn protected() -> String {
    run(async {
        let group = scene::group(3);
        let [locks, other] = [connect(&group.url(), TTL).await, connect(&group.url(), TTL).await];
        let guard = take(&locks, NAME).await;
        renewed(&guard).await;
        let lost = guard.lost();
        let told = tokio::spawn(async move {
            lost.await;
            SystemClock.now()
        });
        (0..2).for_each(|number| group.pause(number));
        let believed_until = SystemClock.now() + guard.remaining();
        for _ in 0..TRIES {
            let lock = other.lock("another").expect("a name");
            let tried = wait::soon("an answer", lock.try_acquire()).await;
            let error = tried.expect_err("one of three servers has granted it");
            assert!(matches!(error, AcquireError::Unavailable(_)), "{error}");
        }
        let told_at = wait::soon("the holder is told", told).await.expect("no panic");
        let late = told_at.saturating_since(believed_until);
        assert!(!guard.is_held());
        let waiting = {
            let lock = other.lock(NAME).expect("a name");
            tokio::spawn(async move { lock.acquire().wait(wait::CEILING).await })
        };
        wait::a_moment().await;
        assert!(!waiting.is_finished());
        (0..2).for_each(|number| group.resume(number));
        let next = wait::soon("a lease", waiting).await.expect("no panic").expect("a lease");
        assert!(next.fence() > guard.fence());
        format!(
            "{TRIES} tries ended as an outage; the holder was told {} ms after its belief had ended, \
             the next one came when the servers were back",
            late.as_millis()
        )
    })
}

fn control() -> String {
    run(async {
        let group = leasehold_testkit::QuorumGroup::start(3);
        let most = NaiveQuorum::of(group.servers().take(2), TTL).await;
        let first = most.ask_all().await;
        assert_eq!(first.len(), 2);
        (0..2).for_each(|number| group.pause(number));
        let last = NaiveQuorum::of(group.servers().skip(2), TTL).await;
        let second = last.ask_all().await;
        two_believers::overlap(&first[0], &second[0])
    })
}
