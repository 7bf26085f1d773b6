//! The contract, kept on five servers that do not know each other.

use leasehold_core::FenceSettings;
use leasehold_testkit::contract::{CASES, Capability, QuorumOfFive, StoreUnderTest};

leasehold_testkit::contract_suite!(QuorumOfFive);

#[tokio::test]
async fn what_needs_one_server_is_left_out() {
    use Capability::{Line, PlainCounter, Replicas, Replication, Restart};
    let subject = QuorumOfFive::start(FenceSettings::default()).await;
    let left_out = CASES.iter().filter(|case| !case.is_for(subject.capabilities()));
    for case in left_out {
        let is_of_one = |need: &Capability| {
            matches!(need, Replication | Line | PlainCounter | Replicas | Restart)
        };
        assert!(case.needs.iter().any(is_of_one), "{case:?}");
    }
}
