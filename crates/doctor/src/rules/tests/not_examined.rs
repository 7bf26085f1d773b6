use super::find;
use crate::{
    Severity, Topic,
    facts::{Fields, NotRead},
    rules::{
        Rule,
        not_examined::{cluster, info, left_out, settings, time},
    },
    tests::{Scene, healthy, seen},
};

const ALL: [Rule; 5] = [info, settings, left_out, cluster, time];

#[test]
fn what_was_told_is_no_finding() {
    assert_eq!(find(ALL, &Scene::of(healthy())), []);
}

#[test]
fn each_command_that_was_denied_is_a_notice() {
    let mut told = healthy();
    told.info = Err(NotRead::Denied);
    told.settings = Err(NotRead::Missing);
    told.timing = Err(NotRead::Silent);
    let found = find(ALL, &Scene::of(told));
    assert_eq!(seen(&found), [(Severity::Notice, Topic::NotExamined, ""); 3]);
    for (one, words) in found.iter().zip([
        ["INFO is denied to this user", "maxmemory-policy", "grant the Redis user +info"],
        ["CONFIG GET does not exist", "min-replicas-to-write", "look at it yourself"],
        ["TIME was not answered", "clock", "look at it yourself"],
    ]) {
        for words in words {
            assert!(one.to_string().contains(words), "{one}: {words}");
        }
    }
}

#[test]
fn what_an_answer_leaves_out_is_a_notice() {
    let mut told = healthy();
    told.info = Ok(Fields::default());
    told.settings = Ok(Fields::default());
    let found = find(ALL, &Scene::of(told));
    assert_eq!(seen(&found), [(Severity::Notice, Topic::NotExamined, "")]);
    let what = "maxmemory-policy, appendonly, replicas in sight, min-replicas-to-write";
    assert!(found[0].what.ends_with(what), "{}", found[0]);
}

#[test]
fn what_another_command_told_is_known() {
    let mut told = healthy();
    told.info = Err(NotRead::Denied);
    let found = find(ALL, &Scene::of(told));
    assert!(!found[0].what.contains("maxmemory-policy"), "{}", found[0]);
}
