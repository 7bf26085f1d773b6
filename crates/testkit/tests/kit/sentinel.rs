use leasehold_testkit::SentinelGroup;

#[test]
fn a_sentinel_group_gets_another_master() {
    let group = SentinelGroup::start();
    let old = group.master().port();
    assert_eq!(old, group.servers()[0].port());
    group.fail_over();
    let new = group.master().port();
    assert_ne!(new, old);
    assert!(group.servers()[1..].iter().any(|server| server.port() == new));
}
