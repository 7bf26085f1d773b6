//! The contract, kept on the master that three Sentinels name, while two replicas follow it.

use leasehold_core::FenceSettings;
use leasehold_testkit::contract::{CASES, Capability, SentinelSubject, StoreUnderTest};

leasehold_testkit::contract_suite!(SentinelSubject);

#[tokio::test]
async fn only_restarts_are_left_out() {
    let subject = SentinelSubject::start(FenceSettings::default()).await;
    let left_out = CASES.iter().filter(|case| !case.is_for(subject.capabilities()));
    for case in left_out {
        assert_eq!(case.needs, [Capability::Restart], "{case:?}");
    }
}
