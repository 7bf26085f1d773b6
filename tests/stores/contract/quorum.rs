//! The contract, kept on three servers that do not know each other, and on five.

use leasehold_core::{FenceSettings, LockName, Mode, StoreErrorKind, store::AcquireAnswer};
use leasehold_testkit::contract::{
    CASES, Calls, Capability, QuorumOfFive, QuorumOfThree, StoreUnderTest, alice, ttl,
};

mod of_three {
    use super::QuorumOfThree;

    leasehold_testkit::contract_suite!(QuorumOfThree);
}

mod of_five {
    use super::QuorumOfFive;

    leasehold_testkit::contract_suite!(QuorumOfFive);
}

#[tokio::test]
async fn what_needs_one_server_is_left_out() {
    use Capability::{Line, PlainCounter, Readers, Replicas, Replication, Restart};
    let settings = FenceSettings::default;
    let three = QuorumOfThree::start(settings()).await.capabilities();
    for has in [three, QuorumOfFive::start(settings()).await.capabilities()] {
        for case in CASES.iter().filter(|case| !case.is_for(has)) {
            let is_of_one = |need: &Capability| {
                matches!(need, Replication | Line | PlainCounter | Readers | Replicas | Restart)
            };
            assert!(case.needs.iter().any(is_of_one), "{case:?}");
        }
    }
}

#[tokio::test]
async fn a_quorum_refuses_readers() {
    let subject = QuorumOfThree::start(FenceSettings::default()).await;
    let name = LockName::new("orders/42").expect("a name");
    let calls = Calls::new(subject.store(), &name, subject.deadline());
    let error = calls.clone().to(Mode::Read).acquire(alice(1), ttl(60), None).await;
    let error = error.expect_err("a quorum has no readers");
    assert_eq!(error.kind(), StoreErrorKind::Config);
    assert!(error.to_string().contains("a quorum has no readers"), "{error}");
    let granted = calls.acquire(alice(1), ttl(60), None).await;
    assert!(matches!(granted, Ok(AcquireAnswer::Granted(_))), "{granted:?}");
}
