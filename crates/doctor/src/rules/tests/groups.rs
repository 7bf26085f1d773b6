use std::time::Duration;

use leasehold_core::{QuorumSettings, StoreError, StoreErrorKind};
use leasehold_redis::Endpoint;

use super::find;
use crate::{
    ClockOffset, Severity, Topic,
    facts::{
        ClusterTold, Deployment, Mark, NamedMaster, NotRead, RoundTrips, SentinelsTold,
        ServerFacts, ServerTold, WatchedMaster,
    },
    rules::groups::{
        boot_mark, full_coverage, node_state, one_address, quorum, sentinels, slots, slots_of_dead,
        slots_of_silent,
    },
    tests::{Scene, group, healthy, info, seen, set},
};

#[test]
fn every_slot_needs_an_owner() {
    assert_eq!(slots(&Ok(16_384)), None);
    let found = Vec::from_iter(slots(&Ok(16_383)));
    assert_eq!(seen(&found), [(Severity::Danger, Topic::Cluster, "")]);
    assert!(found[0].what.starts_with("1 slots"));
    let silent = StoreError::new(StoreErrorKind::Definite, "no node", "look");
    assert_eq!(
        seen(&Vec::from_iter(slots(&Err(silent)))),
        [(Severity::Danger, Topic::Cluster, "")]
    );
}

/// `fix` would give all slots to the one node that is asked, and the others stay alone.
#[test]
fn nodes_that_were_never_joined_are_told_to_be_joined() {
    let found = Vec::from_iter(slots(&Ok(0)));
    assert_eq!(seen(&found), [(Severity::Danger, Topic::Cluster, "")]);
    assert!(found[0].cure.contains("--cluster create HOST:PORT"), "{}", found[0]);
    assert!(!found[0].cure.contains("fix"), "{}", found[0]);
}

#[test]
fn a_node_tells_of_what_is_down() {
    use Severity::{Danger, Warning};
    for (fields, found) in [
        ("cluster_state:ok\r\ncluster_slots_fail:0\r\ncluster_slots_pfail:0", &[][..]),
        ("cluster_state:fail\r\ncluster_slots_fail:0", &[Danger][..]),
        ("cluster_state:ok\r\ncluster_slots_fail:5461", &[Danger][..]),
        ("cluster_state:ok\r\ncluster_slots_pfail:5461", &[Warning][..]),
        ("cluster_state:fail\r\ncluster_slots_fail:9", &[Danger, Danger][..]),
    ] {
        let mut told = healthy();
        told.node = Some(Ok(ClusterTold { info: info(fields), replicas: Some(1), shared: None }));
        let findings = find([node_state, slots_of_dead, slots_of_silent], &Scene::of(told));
        let severities: Vec<_> = findings.iter().map(|one| one.severity).collect();
        assert_eq!(severities, found, "{fields}");
    }
}

#[test]
fn nodes_that_announce_one_address_are_told() {
    let mut scene = Scene::of(healthy());
    assert_eq!(find([one_address], &scene), [], "it is no node");
    scene.told.node = Some(Ok(ClusterTold::default()));
    assert_eq!(find([one_address], &scene), []);
    let shared = Some("one address for 2 nodes".into());
    scene.told.node = Some(Ok(ClusterTold { shared, ..ClusterTold::default() }));
    let findings = find([one_address], &scene);
    assert_eq!(seen(&findings), [(Severity::Danger, Topic::Cluster, "")]);
    assert!(findings[0].cure.contains("cluster-announce-port"), "{}", findings[0]);
}

#[test]
fn one_shard_should_not_stop_the_others() {
    let mut told = healthy();
    set(&mut told, "cluster-require-full-coverage", "yes");
    let mut scene = Scene::of(told);
    assert_eq!(find([full_coverage], &scene), [], "it is no node");
    scene.told.node = Some(Ok(ClusterTold::default()));
    let findings = find([full_coverage], &scene);
    assert_eq!(seen(&findings), [(Severity::Warning, Topic::Cluster, "")]);
}

fn of(mark: Mark) -> ServerTold {
    ServerTold { mark: Some(mark), ..healthy() }
}

fn servers(told: Vec<Option<ServerTold>>) -> Vec<ServerFacts> {
    let away = || StoreError::new(StoreErrorKind::Definite, "nobody answers", "start it");
    let server = |(number, told): (usize, Option<ServerTold>)| ServerFacts {
        place: format!("h{number}:6379"),
        // Each is a server of its own.
        told: told
            .ok_or_else(away)
            .map(|told| ServerTold { runs: [number.to_string()].into(), ..told }),
    };
    told.into_iter().enumerate().map(server).collect()
}

#[test]
fn the_nodes_that_count_are_counted() {
    let well = || Some(of(Mark::Counts));
    let out = || Some(of(Mark::Out(Duration::from_secs(9))));
    for (told, found) in [
        (vec![well(), well(), well()], None),
        (vec![well(), None, well()], Some((Severity::Warning, "2 of 3"))),
        (vec![well(), well(), out()], Some((Severity::Warning, "0 more may fail"))),
        (vec![well(), None, out()], Some((Severity::Danger, "1 of 3"))),
        (
            vec![well(), well(), Some(of(Mark::Missing)), well(), well()],
            Some((Severity::Warning, "1 more")),
        ),
    ] {
        let findings = quorum(&QuorumSettings::default(), &servers(told));
        let expected = found.map(|(severity, _)| (severity, Topic::Quorum, ""));
        assert_eq!(seen(&findings), Vec::from_iter(expected));
        let words = found.map_or("", |(_, words)| words);
        assert!(findings.iter().all(|one| one.what.contains(words)));
    }
}

#[test]
fn a_server_under_two_addresses_counts_once() {
    let mut all = servers((0..3).map(|_| Some(of(Mark::Counts))).collect());
    all[2].told.as_mut().unwrap().runs = ["0".to_owned(), "9".to_owned()].into();
    let findings = quorum(&QuorumSettings::default(), &all);
    let [same, count] = &findings[..] else { panic!("{findings:?}") };
    assert_eq!(
        (same.severity, &*same.servers),
        (Severity::Danger, &["h0:6379", "h2:6379"].map(String::from)[..])
    );
    assert!(count.what.starts_with("2 of 3"), "{count}");
    // Of which it is not known, they are taken for two.
    for server in &mut all {
        server.told.as_mut().unwrap().runs.clear();
    }
    assert_eq!(quorum(&QuorumSettings::default(), &all), []);
}

#[test]
fn a_node_that_does_not_tell_its_run_does_not_count() {
    for (why, is_out) in
        [(NotRead::Denied, true), (NotRead::Missing, true), (NotRead::Silent, false)]
    {
        let told = || ServerTold { info: Err(why.clone()), ..of(Mark::Missing) };
        let mut scene = Scene::of(told());
        scene.deployment = Deployment::Quorum(QuorumSettings::default());
        let findings = find([boot_mark], &scene);
        assert_eq!(findings[0].what.contains("INFO"), is_out, "{findings:?}");
        assert_eq!(findings[0].cure.contains("wait"), !is_out, "{findings:?}");
        let known = |_| Some(ServerTold { mark: Some(Mark::Counts), ..told() });
        let counted = quorum(&QuorumSettings::default(), &servers((0..3).map(known).collect()));
        let danger = is_out.then_some((Severity::Danger, Topic::Quorum, ""));
        assert_eq!(seen(&counted), Vec::from_iter(danger));
    }
}

#[test]
fn clocks_farther_apart_than_the_tolerance_are_told() {
    use ClockOffset::{Ahead, Behind};
    let seconds = Duration::from_secs;
    for (one, other, is_found) in [
        (Ahead(seconds(3)), Behind(seconds(1)), false),
        (Ahead(seconds(3)), Behind(seconds(3)), true),
        (Behind(seconds(9)), Behind(seconds(2)), true),
        (Ahead(Duration::MAX), Behind(seconds(1)), true),
        (Ahead(seconds(9)), Ahead(seconds(8)), false),
    ] {
        let told = |offset| {
            let mut told = of(Mark::Counts);
            let (median, margin) = (Duration::from_millis(1), Duration::from_millis(1));
            told.timing = Ok(RoundTrips { median, offset, margin });
            Some(told)
        };
        let all = servers(vec![told(one), told(other), told(one)]);
        let findings = quorum(&QuorumSettings::default(), &all);
        assert_eq!(findings.len(), usize::from(is_found), "{one} {other}");
        assert!(findings.iter().all(|one| one.what.contains("more than the tolerance 5s")));
    }
}

#[test]
fn a_node_that_is_out_says_for_how_long() {
    for (mark, words) in [
        (Mark::Counts, None),
        (Mark::Out(Duration::from_millis(41_500)), Some("41.5 s")),
        (Mark::Missing, Some("70s after")),
    ] {
        let mut scene = Scene::of(of(mark));
        // Alone, a server has no mark.
        let alone = find([boot_mark], &scene);
        let expected = (mark != Mark::Missing).then_some((Severity::Warning, Topic::Quorum, "P1"));
        assert_eq!(seen(&alone), Vec::from_iter(expected));
        scene.deployment = Deployment::Quorum(QuorumSettings::default());
        let findings = find([boot_mark], &scene);
        let expected = words.map(|_| (Severity::Warning, Topic::Quorum, ""));
        assert_eq!(seen(&findings), Vec::from_iter(expected));
        assert!(findings.iter().all(|one| one.what.contains(words.unwrap_or_default())));
    }
}

/// Changes what the first Sentinel watches.
fn watching(mut group: SentinelsTold, change: impl Fn(&mut WatchedMaster)) -> SentinelsTold {
    for one in &mut group.all {
        if let Ok(Some(named)) = &mut one.told
            && let Ok(watched) = &mut named.watched
        {
            change(watched);
        }
    }
    group
}

#[test]
fn a_number_of_sentinels_that_cannot_be_is_only_told() {
    let group = watching(group(3), |watched| watched.others = Some(usize::MAX));
    assert!(sentinels(&group).iter().any(|one| one.what.contains("lists 3 of")));
}

#[test]
fn three_sentinels_that_agree_are_well() {
    assert_eq!(sentinels(&group(3)), []);
}

fn no_answer() -> StoreError {
    StoreError::new(StoreErrorKind::Definite, "no answer", "start it")
}

#[test]
fn a_name_that_no_sentinel_knows_is_told_once_and_is_to_be_corrected() {
    let mut group = group(3);
    group.master = None;
    group.all.iter_mut().for_each(|one| one.told = Ok(None));
    let found = sentinels(&group);
    assert_eq!(seen(&found), [(Severity::Danger, Topic::Sentinels, "")]);
    assert!(found[0].what.contains("`orders`"), "{}", found[0]);
    assert!(found[0].cure.contains("the name that `sentinel monitor` has"), "{}", found[0]);
}

#[test]
fn sentinels_that_disagree_are_told_to_agree() {
    let mut group = group(3);
    group.master = None;
    for (number, one) in group.all.iter_mut().enumerate() {
        let master = Endpoint { host: format!("m{number}"), port: 1 };
        one.told = Ok(Some(NamedMaster { master, watched: Err(NotRead::Silent) }));
    }
    let found = sentinels(&group);
    let danger = found.iter().find(|one| one.severity == Severity::Danger).unwrap();
    assert!(danger.cure.contains("watch the same master"), "{danger}");
}

#[test]
fn one_that_does_not_answer_is_named_with_what_helps() {
    let mut group = group(3);
    group.all[2].told = Err(no_answer());
    let found = sentinels(&group);
    assert_eq!(seen(&found), [(Severity::Warning, Topic::Sentinels, "")]);
    assert_eq!(found[0].servers, ["s2:26379"]);
    assert_eq!(found[0].cure, "start it");
    // Without most of them, nobody is believed.
    group.all[1].told = Err(no_answer());
    group.master = None;
    assert!(sentinels(&group).iter().all(|one| one.severity == Severity::Danger));
}

#[test]
fn one_that_names_another_master_is_named() {
    for other in [None, Some(Endpoint { host: "elsewhere".into(), port: 1 })] {
        let mut group = group(3);
        let watched = Ok(WatchedMaster::default());
        group.all[0].told = Ok(other.map(|master| NamedMaster { master, watched }));
        let found = sentinels(&group);
        assert_eq!(seen(&found), [(Severity::Warning, Topic::Sentinels, "P1")]);
        assert_eq!(found[0].servers, ["s0:26379"]);
    }
}

#[test]
fn numbers_have_to_fit() {
    let table: [(SentinelsTold, Severity, &str); 6] = [
        (group(2), Severity::Warning, "there are 2 Sentinels"),
        (watching(group(3), |one| one.others = Some(4)), Severity::Warning, "3 of 5"),
        (watching(group(3), |one| one.quorum = Some(4)), Severity::Danger, "quorum is 4"),
        (watching(group(3), |one| one.replicas = Some(0)), Severity::Warning, "no replica"),
        (watching(group(3), |one| one.is_down = true), Severity::Warning, "for dead"),
        (uneven(), Severity::Warning, "different quorums"),
    ];
    for (group, severity, words) in table {
        let found = sentinels(&group);
        assert!(!found.is_empty(), "{words}");
        for one in found {
            assert!(one.severity == severity && one.what.contains(words), "{one}");
        }
    }
}

#[test]
fn one_that_does_not_tell_what_it_watches_was_not_examined() {
    let mut group = group(3);
    if let Ok(Some(named)) = &mut group.all[1].told {
        named.watched = Err(NotRead::Denied);
    }
    let found = sentinels(&group);
    assert_eq!(seen(&found), [(Severity::Notice, Topic::NotExamined, "")]);
    assert_eq!(found[0].servers, ["s1:26379"]);
    assert!(found[0].cure.contains("+sentinel|master"), "{}", found[0]);
}

fn uneven() -> SentinelsTold {
    let mut group = group(3);
    if let Ok(Some(named)) = &mut group.all[0].told
        && let Ok(watched) = &mut named.watched
    {
        watched.quorum = Some(3);
    }
    group
}
