use std::collections::BTreeSet;

use crate::{Finding, Promise::OneBeliever, Severity, Topic, facts::Sentinels};

const SENTINELS: Topic = Topic::Sentinels;

/// Whether the Sentinels answer, agree, and can fail over.
pub(super) fn judge(group: &Sentinels) -> Vec<Finding> {
    let mut findings = silent(group);
    findings.extend(votes(group));
    findings.extend(numbers(group));
    for (place, named) in group.answers() {
        let Some(Err(why)) = named.map(|named| &named.watched) else { continue };
        let what = format!(
            "SENTINEL MASTER {why}; not examined: the quorum of the Sentinel, how many others and replicas it knows"
        );
        let cure = "grant the user of the Sentinels +sentinel|master, or look at it yourself";
        findings.push(Finding::new(Severity::Notice, Topic::NotExamined, what, cure).at(place));
    }
    for (place, watched) in group.watched() {
        if watched.is_down {
            let what = "the Sentinel takes the master for dead";
            let cure = "see its log, and whether it reaches the master";
            findings.push(Finding::new(Severity::Warning, SENTINELS, what, cure).at(place));
        }
    }
    findings
}

/// Those that do not answer.
fn silent(group: &Sentinels) -> Vec<Finding> {
    let (listed, answered) = (group.all.len(), group.answers().count());
    // Without most of them no master is believed anew.
    let is_enough = answered * 2 > listed;
    let severity = if is_enough { Severity::Warning } else { Severity::Danger };
    let failed = group.all.iter().filter_map(|one| Some((one, one.told.as_ref().err()?)));
    failed
        .map(|(one, words)| {
            let what = format!("the Sentinel tells nothing: {words}");
            let cure = "start it again, or take it out of the address";
            Finding::new(severity, SENTINELS, what, cure).at(&one.place)
        })
        .collect()
}

/// Whether they name one master.
fn votes(group: &Sentinels) -> Vec<Finding> {
    let (name, listed) = (&group.name, group.all.len());
    let mut findings = Vec::new();
    if group.master.is_none() {
        let what = format!(
            "no master is named by most Sentinels: {} of {listed} answered",
            group.answers().count()
        );
        let cure = "start the Sentinels that are missing, and have them watch the same master";
        findings.push(Finding::new(Severity::Danger, SENTINELS, what, cure));
    }
    for (place, named) in group.answers() {
        let what = match named {
            None => format!("the Sentinel knows no master named `{name}`"),
            Some(named) if group.master.as_ref().is_some_and(|most| *most != named.place) => {
                format!("the Sentinel names {} as the master, and most do not", named.place)
            }
            Some(_) => continue,
        };
        let cure = "have it watch the same master as the others (SENTINEL MONITOR), or take it out of the address";
        findings.push(
            Finding::new(Severity::Warning, SENTINELS, what, cure)
                .endangers(&[OneBeliever])
                .at(place),
        );
    }
    findings
}

/// How many Sentinels and replicas there are, and how many have to agree.
fn numbers(group: &Sentinels) -> Vec<Finding> {
    let listed = group.all.len();
    let warn = |what: String, cure| Finding::new(Severity::Warning, SENTINELS, what, cure);
    let mut findings = Vec::new();
    let known =
        group.watched().filter_map(|(_, watched)| Some(watched.others?.saturating_add(1))).max();
    if let Some(known) = known.filter(|known| *known > listed) {
        let what = format!(
            "the address lists {listed} of {known} Sentinels: most of the listed ones are believed"
        );
        let cure = "list all Sentinels in the address";
        findings.push(warn(what, cure).endangers(&[OneBeliever]));
    }
    let most = known.unwrap_or(0).max(listed);
    if most < 3 {
        let what = format!("there are {most} Sentinels: if one is down, nothing is decided");
        findings.push(warn(what, "run three Sentinels at least, on machines of their own"));
    }
    let quorums: BTreeSet<_> = group.watched().filter_map(|(_, watched)| watched.quorum).collect();
    if quorums.len() > 1 {
        let what = format!("the Sentinels have different quorums: {quorums:?}");
        findings.push(warn(what, "set the same quorum on each (SENTINEL SET … quorum)"));
    }
    if let (Some(quorum), Some(known)) = (quorums.last(), known)
        && *quorum > known
    {
        let what =
            format!("the quorum is {quorum}, and there are {known} Sentinels: none fails over");
        let cure = "set the quorum to more than half of the Sentinels";
        findings.push(Finding::new(Severity::Danger, SENTINELS, what, cure));
    }
    if group.watched().filter_map(|(_, watched)| watched.replicas).max() == Some(0) {
        let what = "the Sentinels know no replica of the master: they cannot fail over".to_owned();
        findings.push(warn(what, "start a replica of the master"));
    }
    findings
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::{
        facts::{NamedMaster, NotRead, WatchedMaster},
        tests::{group, seen},
    };

    /// Changes what the first Sentinel watches.
    fn watching(mut group: Sentinels, change: impl Fn(&mut WatchedMaster)) -> Sentinels {
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
        assert!(judge(&group).iter().any(|one| one.what.contains("lists 3 of")));
    }

    #[test]
    fn three_sentinels_that_agree_are_well() {
        assert_eq!(judge(&group(3)), []);
    }

    #[test]
    fn one_that_does_not_answer_is_named() {
        let mut group = group(3);
        group.all[2].told = Err("no answer".into());
        let found = judge(&group);
        assert_eq!(seen(&found), [(Severity::Warning, Topic::Sentinels, "")]);
        assert_eq!(found[0].servers, ["s2:26379"]);
        // Without most of them, nobody is believed.
        group.all[1].told = Err("no answer".into());
        group.master = None;
        assert!(judge(&group).iter().all(|one| one.severity == Severity::Danger));
    }

    #[test]
    fn one_that_names_another_master_is_named() {
        for other in [None, Some("elsewhere:1".to_owned())] {
            let mut group = group(3);
            let watched = Ok(WatchedMaster::default());
            group.all[0].told = Ok(other.map(|place| NamedMaster { place, watched }));
            let found = judge(&group);
            assert_eq!(seen(&found), [(Severity::Warning, Topic::Sentinels, "P1")]);
            assert_eq!(found[0].servers, ["s0:26379"]);
        }
    }

    #[test]
    fn numbers_have_to_fit() {
        let table: [(Sentinels, Severity, &str); 6] = [
            (group(2), Severity::Warning, "there are 2 Sentinels"),
            (watching(group(3), |one| one.others = Some(4)), Severity::Warning, "3 of 5"),
            (watching(group(3), |one| one.quorum = Some(4)), Severity::Danger, "quorum is 4"),
            (watching(group(3), |one| one.replicas = Some(0)), Severity::Warning, "no replica"),
            (watching(group(3), |one| one.is_down = true), Severity::Warning, "for dead"),
            (uneven(), Severity::Warning, "different quorums"),
        ];
        for (group, severity, words) in table {
            let found = judge(&group);
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
        let found = judge(&group);
        assert_eq!(seen(&found), [(Severity::Notice, Topic::NotExamined, "")]);
        assert_eq!(found[0].servers, ["s1:26379"]);
        assert!(found[0].cure.contains("+sentinel|master"), "{}", found[0]);
    }

    fn uneven() -> Sentinels {
        let mut group = group(3);
        if let Ok(Some(named)) = &mut group.all[0].told
            && let Ok(watched) = &mut named.watched
        {
            watched.quorum = Some(3);
        }
        group
    }
}
