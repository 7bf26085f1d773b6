//! The contract, kept on three servers that do not know each other, and on five.

use leasehold_core::FenceSettings;
use leasehold_testkit::contract::{CASES, Capability, QuorumOfFive, QuorumOfThree, StoreUnderTest};

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
