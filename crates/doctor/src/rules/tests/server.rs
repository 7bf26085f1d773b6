use std::{collections::BTreeSet, time::Duration};

use leasehold_core::{
    FencePolicy, FenceSettings, NamePattern, QuorumSettings, StoreError, StoreErrorKind, Ttl,
};

use super::find;
use crate::{
    ClockOffset::{self, Ahead, Behind},
    Severity, Topic,
    facts::{Connections, Deployment, Fields, NotRead, RoundTrips},
    rules::server::{
        acknowledgements, clock, connections, disk, eviction, failed_save, latency, masters,
        restart, scripts, subscription,
    },
    tests::{Scene, disks, healthy, info, replicas, seen, set},
};

#[test]
fn several_masters_at_one_address_are_a_danger() {
    for (runs, found) in [
        (&[][..], None),
        (&["a"], None),
        (&["a", "b"], Some((Severity::Danger, Topic::Reach, "P1"))),
    ] {
        let mut told = healthy();
        told.runs = runs.iter().map(ToString::to_string).collect::<BTreeSet<_>>();
        let findings = find([masters], &Scene::of(told));
        assert_eq!(seen(&findings), Vec::from_iter(found), "{runs:?}");
    }
}

fn refused(kind: StoreErrorKind) -> StoreError {
    StoreError::new(kind, "NOPERM this user", "grant it").as_answer()
}

#[test]
fn a_denied_script_or_subscription_is_a_danger() {
    let mut told = healthy();
    told.scripts = Err(refused(StoreErrorKind::Config));
    told.subscribes = Err(refused(StoreErrorKind::Config));
    let scene = Scene::of(told);
    let found = find([scripts], &scene);
    assert_eq!(seen(&found), [(Severity::Danger, Topic::Rights, "")]);
    assert!(found[0].what.contains("NOPERM this user") && found[0].cure == "grant it");
    assert_eq!(seen(&find([subscription], &scene)), [(Severity::Danger, Topic::Rights, "P8")]);
}

#[test]
fn a_subscription_that_is_not_answered_is_told_unless_the_scripts_are_silent_too() {
    let silent = || StoreError::new(StoreErrorKind::Definite, "not in time", "look");
    let mut told = healthy();
    told.subscribes = Err(silent());
    let found = find([subscription], &Scene::of(told));
    assert_eq!(seen(&found), [(Severity::Danger, Topic::Reach, "P8")]);
    assert!(found[0].cure.contains("proxy"), "{}", found[0]);
    let mut told = healthy();
    (told.scripts, told.subscribes) = (Err(silent()), Err(silent()));
    assert_eq!(find([subscription], &Scene::of(told)), []);
}

#[test]
fn connections_that_are_refused_are_told() {
    for (made, severity) in [(1, Severity::Danger), (2, Severity::Danger), (3, Severity::Warning)] {
        let mut told = healthy();
        let failed = StoreError::new(StoreErrorKind::Definite, "max number", "raise it");
        told.connections = Connections { made, failed: Some(failed) };
        let found = find([connections], &Scene::of(told));
        assert_eq!(seen(&found), [(severity, Topic::Reach, "")]);
        assert!(found[0].what.contains("max number") && found[0].cure == "raise it");
    }
    assert_eq!(find([connections], &Scene::of(healthy())), []);
}

#[test]
fn a_server_that_is_full_is_no_matter_of_rights() {
    let mut told = healthy();
    told.scripts = Err(refused(StoreErrorKind::Definite));
    let found = find([scripts], &Scene::of(told));
    assert_eq!(seen(&found), [(Severity::Danger, Topic::Scripts, "")]);
}

#[test]
fn wait_matters_where_acknowledgements_are_asked_for() {
    for (acks, words) in [(replicas(1), "+wait"), (disks(1), "+waitaof")] {
        let mut told = healthy();
        told.acks = Some(Err(NotRead::Denied));
        let scene = Scene::of(told).asking(acks);
        let found = find([acknowledgements], &scene);
        assert_eq!(seen(&found), [(Severity::Danger, Topic::Rights, "")]);
        assert!(found[0].cure.ends_with(words), "{}", found[0]);
    }
    let mut told = healthy();
    told.acks = Some(Err(NotRead::Missing));
    let found = find([acknowledgements], &Scene::of(told).asking(disks(1)));
    assert_eq!(seen(&found), [(Severity::Danger, Topic::Rights, "")]);
    assert!(found[0].cure.contains("Redis 7.2"), "{}", found[0]);
    let mut told = healthy();
    told.acks = Some(Err(NotRead::Silent));
    let scene = Scene::of(told).asking(replicas(1));
    assert_eq!(seen(&find([acknowledgements], &scene)), [(Severity::Notice, Topic::Rights, "")]);
    assert_eq!(find([acknowledgements], &Scene::of(healthy())), []);
}

#[test]
fn a_policy_that_evicts_endangers_leases() {
    use Severity::{Danger, Warning};
    for (policy, limit, found) in [
        ("noeviction", "0", None),
        ("noeviction", "1000", None),
        ("allkeys-lru", "1000", Some(Danger)),
        ("allkeys-random", "0", Some(Warning)),
        ("volatile-ttl", "1000", Some(Danger)),
        ("volatile-lru", "0", Some(Warning)),
    ] {
        let mut told = healthy();
        set(&mut told, "maxmemory-policy", policy);
        set(&mut told, "maxmemory", limit);
        let findings = find([eviction], &Scene::of(told));
        let expected = found.map(|severity| (severity, Topic::Eviction, "P1 P2 P7"));
        assert_eq!(seen(&findings), Vec::from_iter(expected), "{policy} {limit}");
        assert!(findings.iter().all(|one| one.cure.contains("noeviction")));
    }
}

#[test]
fn info_tells_the_policy_where_config_is_denied() {
    let mut told = healthy();
    told.settings = Ok(Fields::default());
    told.info = Ok(info("maxmemory:1000\r\nmaxmemory_policy:volatile-lru\r\n"));
    let findings = find([eviction], &Scene::of(told));
    assert_eq!(seen(&findings), [(Severity::Danger, Topic::Eviction, "P1 P2 P7")]);
}

#[test]
fn what_a_restart_loses() {
    for (appendonly, appendfsync, save, words) in [
        ("yes", "everysec", "", None),
        ("yes", "always", "3600 1", None),
        ("yes", "no", "", Some("appendfsync is no")),
        ("no", "everysec", "", Some("a restart loses every lease")),
        ("no", "everysec", "3600 1", Some("since the last snapshot")),
    ] {
        let mut told = healthy();
        for (name, value) in
            [("appendonly", appendonly), ("appendfsync", appendfsync), ("save", save)]
        {
            set(&mut told, name, value);
        }
        let mut scene = Scene::of(told);
        let found = find([restart], &scene);
        let expected = words.map(|_| (Severity::Warning, Topic::Persistence, "P1 P2"));
        assert_eq!(seen(&found), Vec::from_iter(expected));
        assert!(found.iter().all(|one| one.what.contains(words.unwrap_or_default())));
        scene.expected.fencing = scene.expected.fencing.policy(FencePolicy::Counter);
        assert!(find([restart], &scene).iter().all(|one| one.severity == Severity::Danger));
    }
}

#[test]
fn a_node_of_a_quorum_that_loses_data_stays_out() {
    for (appendonly, appendfsync, count) in
        [("yes", "always", 0), ("yes", "everysec", 1), ("no", "always", 1)]
    {
        let mut told = healthy();
        set(&mut told, "appendonly", appendonly);
        set(&mut told, "appendfsync", appendfsync);
        let mut scene = Scene::of(told);
        scene.deployment = Deployment::Quorum(QuorumSettings::default());
        let found = find([restart], &scene);
        assert_eq!(found.len(), count, "{appendonly} {appendfsync}");
        assert!(
            found.iter().all(|one| one.severity == Severity::Notice && one.what.contains("70s"))
        );
    }
}

#[test]
fn info_tells_it_where_config_is_denied() {
    for (enabled, count) in [("1", 0), ("0", 1)] {
        let mut told = healthy();
        told.settings = Ok(Fields::default());
        told.info = Ok(info(&format!("aof_enabled:{enabled}\r\n")));
        assert_eq!(find([restart], &Scene::of(told)).len(), count, "{enabled}");
    }
}

#[test]
fn a_save_that_failed_is_told() {
    let mut told = healthy();
    told.info = Ok(info("rdb_last_bgsave_status:err\r\naof_last_write_status:ok\r\n"));
    let found = find([failed_save], &Scene::of(told));
    assert_eq!(seen(&found), [(Severity::Danger, Topic::Persistence, "")]);
    assert!(found[0].what.contains("rdb_last_bgsave_status"));
}

#[test]
fn disks_cannot_acknowledge_without_a_file() {
    let mut told = healthy();
    set(&mut told, "appendonly", "no");
    let scene = Scene::of(told).asking(disks(0));
    let found = find([restart, disk], &scene);
    assert_eq!(found.len(), 2);
    assert_eq!(found[1].severity, Severity::Danger);
}

fn timing(offset: ClockOffset, margin: u64) -> RoundTrips {
    let margin = Duration::from_millis(margin);
    RoundTrips { median: Duration::from_millis(1), offset, margin }
}

#[test]
fn a_clock_that_is_off_is_told_with_its_offset() {
    use Severity::{Danger, Warning};
    let seconds = Duration::from_secs;
    for (offset, margin, found) in [
        (Ahead(Duration::from_millis(900)), 0, None),
        (Ahead(seconds(2)), 1500, None),
        (Ahead(seconds(2)), 1, Some(Warning)),
        (Behind(seconds(3600)), 1, Some(Warning)),
        (Behind(seconds(90_000)), 1, Some(Danger)),
        (Ahead(seconds(90_000)), 1, Some(Danger)),
    ] {
        let mut told = healthy();
        told.timing = Ok(timing(offset, margin));
        let findings = find([clock], &Scene::of(told));
        let expected = found.map(|severity| (severity, Topic::Clock, "P1 P2"));
        assert_eq!(seen(&findings), Vec::from_iter(expected), "{offset} {margin}");
        assert!(findings.iter().all(|one| one.what.contains(&offset.to_string())));
    }
}

#[test]
fn a_counter_that_expires_sooner_makes_it_worse() {
    let mut told = healthy();
    told.timing = Ok(timing(Ahead(Duration::from_secs(7200)), 0));
    let mut scene = Scene::of(told);
    assert_eq!(find([clock], &scene)[0].severity, Severity::Warning);
    let (hour, fencing) = (Duration::from_secs(3600), FenceSettings::default);
    for fencing in [fencing().retention(hour), fencing().retention_of(NamePattern::default(), hour)]
    {
        scene.expected.fencing = fencing.unwrap();
        assert_eq!(find([clock], &scene)[0].severity, Severity::Danger);
        scene.expected.fencing = scene.expected.fencing.policy(FencePolicy::Counter);
        assert_eq!(find([clock], &scene)[0].severity, Severity::Warning);
    }
}

#[test]
fn a_clock_that_was_not_read_is_no_finding_of_this_rule() {
    let mut told = healthy();
    told.timing = Err(NotRead::Silent);
    assert_eq!(find([clock], &Scene::of(told)), []);
}

#[test]
fn a_round_trip_is_compared_with_the_times_that_were_set() {
    use Severity::{Danger, Warning};
    let millis = Duration::from_millis;
    for (trip, ttl, command, window, found) in [
        (1, 30_000, 2000, 3000, None),
        (499, 30_000, 2000, 3000, None),
        (501, 30_000, 2000, 3000, Some(Warning)),
        (2000, 30_000, 2000, 3000, Some(Danger)),
        (110, 3000, 1500, 3000, None),
        (130, 3000, 1500, 3000, Some(Warning)),
        (500, 3000, 1500, 3000, Some(Danger)),
        (70, 30_000, 2000, 300, Some(Warning)),
    ] {
        let mut told = healthy();
        let offset = Ahead(Duration::ZERO);
        told.timing = Ok(RoundTrips { median: millis(trip), offset, margin: millis(trip) / 2 });
        let mut scene = Scene::of(told);
        scene.expected.ttl = Ttl::new(millis(ttl)).unwrap();
        scene.expected.command_timeout = millis(command);
        scene.expected.claim_window = millis(window);
        let expected = found.map(|severity| (severity, Topic::Latency, "P5 P7 P10"));
        assert_eq!(seen(&find([latency], &scene)), Vec::from_iter(expected), "{trip} ms");
    }
}
