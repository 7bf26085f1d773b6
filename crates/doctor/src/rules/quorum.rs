use std::time::Duration;

use leasehold_core::QuorumSettings;
use leasehold_quorum::majority;

use super::Case;
use crate::{
    ClockOffset, Finding,
    Promise::FencesGrow,
    Severity, Topic,
    facts::{Deployment, Mark, ServerFacts, ServerTold},
};

/// How many nodes decide, and whether their clocks agree.
pub(super) fn judge(settings: &QuorumSettings, servers: &[ServerFacts]) -> Vec<Finding> {
    let counting = servers.iter().filter(|server| counts(server)).count();
    too_few(counting, servers.len()).into_iter().chain(apart(settings, servers)).collect()
}

/// Whether a node answers, and votes as far as it is known.
fn counts(server: &ServerFacts) -> bool {
    let is_out = |told: &ServerTold| matches!(told.mark, Some(Ok(Mark::Missing | Mark::Out(_))));
    server.told.as_ref().is_ok_and(|told| !is_out(told))
}

fn too_few(counting: usize, nodes: usize) -> Option<Finding> {
    let needed = majority(nodes);
    let cure = "start the others again; one that is new or has lost data counts again by itself";
    let finding = |severity, then: String| {
        let what = format!("{counting} of {nodes} nodes of the quorum answer and count: {then}");
        Finding::new(severity, Topic::Quorum, what, cure)
    };
    if counting < needed {
        let then = format!("that is no majority, and no lock is granted until {needed} do");
        return Some(finding(Severity::Danger, then));
    }
    let spare = counting - needed;
    (counting < nodes).then(|| finding(Severity::Warning, format!("{spare} more may fail")))
}

/// The two clocks that are farthest apart, if that is more than the settings allow.
fn apart(settings: &QuorumSettings, servers: &[ServerFacts]) -> Option<Finding> {
    // How far each clock is ahead of ours, in nanoseconds, and how wrong that can be.
    let clock = |server: &ServerFacts| {
        let timing = server.told.as_ref().ok()?.timing.as_ref().ok()?;
        let nanos = |time: Duration| i128::try_from(time.as_nanos()).unwrap_or(i128::MAX);
        let offset = match timing.offset {
            ClockOffset::Ahead(by) => nanos(by),
            ClockOffset::Behind(by) => -nanos(by),
        };
        Some((offset, nanos(timing.margin)))
    };
    let clocks = || servers.iter().filter_map(|server| Some((&server.place, clock(server)?)));
    let (ahead, (most, margin)) = clocks().max_by_key(|(_, (offset, margin))| offset - margin)?;
    let (behind, (least, other)) = clocks().min_by_key(|(_, (offset, margin))| offset + margin)?;
    let apart = ((most - margin) - (least + other)).max(0) / 1_000_000;
    let apart = Duration::from_millis(u64::try_from(apart).unwrap_or(u64::MAX));
    let tolerance = settings.clock_tolerance();
    if apart <= tolerance {
        return None;
    }
    let what = format!(
        "the clock of {ahead} is {apart:?} ahead of that of {behind}, more than the tolerance {tolerance:?} of the quorum: fences cost a second round trip, and may repeat if a node loses its data"
    );
    let cure = "let NTP slew the clocks of all nodes, and correct the wrong one";
    Some(Finding::new(Severity::Warning, Topic::Clock, what, cure).endangers(&[FencesGrow]))
}

/// Whether a node votes.
pub(super) fn of_node(case: Case<'_>) -> Vec<Finding> {
    let (Deployment::Quorum(settings), Some(Ok(mark))) = (case.deployment, &case.told.mark) else {
        return Vec::new();
    };
    let what = match mark {
        Mark::Counts => return Vec::new(),
        Mark::Out(rest) => format!(
            "it is new or has lost data: it stays out, and counts again in {:.1} s",
            rest.as_secs_f64()
        ),
        Mark::Missing => format!(
            "it has no boot mark, so it is new or has lost its data: it counts {:?} after a process has connected",
            settings.stay_out()
        ),
    };
    let cure =
        "wait until no lease can be left that it has forgotten, and restart no other node before";
    vec![Finding::new(Severity::Warning, Topic::Quorum, what, cure)]
}

#[cfg(test)]
mod tests {
    use leasehold_core::{StoreError, StoreErrorKind};

    use super::*;
    use crate::{
        facts::RoundTrips,
        tests::{Scene, healthy, seen},
    };

    fn of(mark: Mark) -> ServerTold {
        ServerTold { mark: Some(Ok(mark)), ..healthy() }
    }

    fn servers(told: Vec<Option<ServerTold>>) -> Vec<ServerFacts> {
        let away = || StoreError::new(StoreErrorKind::Definite, "nobody answers", "start it");
        let server = |(number, told): (usize, Option<ServerTold>)| ServerFacts {
            place: format!("h{number}:6379"),
            told: told.ok_or_else(away),
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
            let findings = judge(&QuorumSettings::default(), &servers(told));
            let expected = found.map(|(severity, _)| (severity, Topic::Quorum, ""));
            assert_eq!(seen(&findings), Vec::from_iter(expected));
            let words = found.map_or("", |(_, words)| words);
            assert!(findings.iter().all(|one| one.what.contains(words)));
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
            let findings = judge(&QuorumSettings::default(), &all);
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
            assert_eq!(of_node(scene.case()), [], "it is no node of a quorum");
            scene.deployment = Deployment::Quorum(QuorumSettings::default());
            let findings = of_node(scene.case());
            let expected = words.map(|_| (Severity::Warning, Topic::Quorum, ""));
            assert_eq!(seen(&findings), Vec::from_iter(expected));
            assert!(findings.iter().all(|one| one.what.contains(words.unwrap_or_default())));
        }
    }
}
