//! The nodes of a quorum: some away, some out, with clocks apart.

use std::time::Duration;

use leasehold::diagnosis::{Severity, Topic};
use leasehold_testkit::QuorumGroup;
use tokio::task::block_in_place;

use super::{about, connect, place, tells, the_one};

#[tokio::test(flavor = "multi_thread", worker_threads = 2)]
async fn nodes_that_are_away_or_out_are_told() {
    let group = block_in_place(|| {
        let group = QuorumGroup::builder(3).clocks().start();
        group.let_vote();
        group
    });
    let locks = connect(&group.url()).await;
    let diagnosis = locks.diagnose().await;
    assert!(about(&diagnosis, Topic::Quorum).is_empty(), "{diagnosis}");
    assert!(about(&diagnosis, Topic::Clock).is_empty(), "{diagnosis}");
    // It is no danger that a node forgets: it stays out.
    tells(the_one(&diagnosis, Topic::Persistence), Severity::Notice, "", &["stays out for 70s"]);

    group.clock(2).forward(Duration::from_secs(3600));
    let diagnosis = locks.diagnose().await;
    let apart = about(&diagnosis, Topic::Clock);
    let apart = apart.iter().find(|finding| finding.servers.is_empty()).expect("of the group");
    tells(apart, Severity::Warning, "P2", &["more than the tolerance 5s", "NTP"]);
    group.clock(2).back(Duration::from_secs(3600));

    block_in_place(|| group.server(1).flush_all());
    let diagnosis = locks.diagnose().await;
    let found = about(&diagnosis, Topic::Quorum);
    let [all, node] = found[..] else { panic!("{diagnosis}") };
    tells(all, Severity::Warning, "", &["2 of 3 nodes", "0 more may fail"]);
    // Somebody may have set the mark meanwhile.
    tells(node, Severity::Warning, "", &["lost", "counts"]);
    assert_eq!(node.servers, [place(group.server(1).port())]);

    block_in_place(|| group.kill(0));
    let diagnosis = locks.diagnose().await;
    tells(the_one(&diagnosis, Topic::Reach), Severity::Warning, "", &[]);
    let all = about(&diagnosis, Topic::Quorum);
    tells(all[0], Severity::Danger, "", &["1 of 3 nodes", "no majority"]);
}
