use std::{borrow::Cow, time::Duration};

use leasehold_core::{StoreError, StoreErrorKind};

use super::tally::majority;

/// The error of a command while too few nodes count: so many of all are `missing`. Some of them have failed.
pub(crate) fn too_few(
    missing: usize,
    nodes: usize,
    failures: &[StoreError],
    may_have_run: bool,
) -> StoreError {
    // The others may not have been heard.
    let least = if missing < nodes { "at least " } else { "" };
    let what = format!(
        "{least}{missing} of {nodes} nodes do not answer or do not count, which leaves no majority: {}",
        causes(failures)
    );
    // While enough of the others may come back, it passes.
    let lasts = failures.iter().filter(|error| lasts(error)).count() > nodes - majority(nodes);
    let worst = failures.iter().min_by_key(|error| rank(error, lasts));
    let kind = match worst {
        Some(error) if lasts && !error.kind().is_transient() => error.kind(),
        _ if may_have_run => StoreErrorKind::Indeterminate,
        _ => StoreErrorKind::Definite,
    };
    let error = StoreError::new(kind, what, remedy(failures, lasts));
    let answers = failures.iter().filter(|error| error.is_answer()).count();
    let error =
        if nodes + answers >= missing + majority(nodes) { error.as_answer() } else { error };
    let error = if worst.is_some_and(StoreError::is_ours) { error.ours() } else { error };
    if lasts && worst.is_some_and(StoreError::is_refused_login) {
        error.refused_login()
    } else {
        error
    }
}

/// Whether a node will refuse this process until somebody changes something.
pub(crate) fn lasts(error: &StoreError) -> bool {
    !error.kind().is_transient() || error.is_refused_login()
}

/// The worse a failure is, the lower: one that lasts, if too few others are left; then a node that is away;
/// then one that is about to count again.
fn rank(error: &StoreError, lasting: bool) -> u8 {
    match (lasting && lasts(error), error.is_answer()) {
        (true, _) => u8::from(error.kind().is_transient()),
        (false, false) => 2,
        (false, true) => 3,
    }
}

/// What helps against the worst failures, each remedy once.
fn remedy(failures: &[StoreError], lasting: bool) -> String {
    let Some(worst) = failures.iter().map(|error| rank(error, lasting)).min() else {
        return UNHEARD.1.into();
    };
    let mut remedies = Vec::new();
    for error in failures.iter().filter(|error| rank(error, lasting) == worst) {
        if !remedies.contains(&error.remedy()) {
            remedies.push(error.remedy());
        }
    }
    remedies.join("; and ")
}

const UNHEARD: (&str, &str) = ("they did not answer in time", "check the nodes and the network");

/// What the nodes said, each cause once, with the nodes that gave it.
fn causes(failures: &[StoreError]) -> String {
    let mut told = Vec::<(&str, Vec<&str>)>::new();
    for failure in failures {
        let (what, place) = (failure.what(), failure.endpoint().unwrap_or("one of them"));
        match told.iter_mut().find(|(known, _)| *known == what) {
            Some((_, places)) if places.contains(&place) => {}
            Some((_, places)) => places.push(place),
            None => told.push((what, vec![place])),
        }
    }
    if told.is_empty() {
        return UNHEARD.0.into();
    }
    let told = told.iter().map(|(what, places)| format!("{what} (at {})", places.join(", ")));
    told.collect::<Vec<_>>().join("; ")
}

/// The error of an inspection that found a lease on a minority, while nodes that may have it did not
/// answer.
pub(crate) fn minority(
    having: usize,
    answered: usize,
    nodes: usize,
    failures: &[StoreError],
) -> StoreError {
    let missing = nodes - answered;
    let what = format!(
        "whether the lock is held is unknown: {having} of {nodes} nodes have a lease of it, which is no \
         majority, and {missing} did not answer or do not count: {}",
        causes(failures)
    );
    let worst = failures.iter().min_by_key(|error| rank(error, false));
    let remedy = worst.map_or(UNHEARD.1, StoreError::remedy).to_owned();
    StoreError::new(StoreErrorKind::Definite, what, remedy).as_answer()
}

/// The error of a node that does not vote yet.
pub(crate) fn out(place: &str, rest: Option<Duration>) -> StoreError {
    let what = match rest {
        Some(rest) => format!(
            "it is new or has lost its data, and counts again in {:.1} s",
            rest.as_secs_f64()
        ),
        None => "it has lost its data".to_owned(),
    };
    let remedy = "wait; it stays out until no lease can be left that it has forgotten";
    let error = StoreError::new(StoreErrorKind::Definite, what, remedy).as_answer();
    error.from_endpoint(place)
}

/// What to do about one server under several names.
pub(crate) const ONE_EACH: &str =
    "name 3, 5 or 7 servers, each of them once: what one server has said must not count twice";

/// The error of an address that leads to the server of another one.
pub(crate) fn same_server(place: &str, other: &str) -> StoreError {
    let what = format!("{other} and {place} lead to the same server (they have one run_id)");
    StoreError::new(StoreErrorKind::Config, what, ONE_EACH).as_answer()
}

/// The error for a setting that a quorum does not serve.
pub(crate) fn not_served(what: impl Into<Cow<'static, str>>, remedy: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Config, what, remedy)
}

/// The error of a lock that is to stay closed for longer than a node that lost its data stays out.
pub(crate) fn kept_for_too_long(rest: Duration, longest: Duration) -> StoreError {
    let what = format!(
        "a lock is to stay closed for {rest:?}, above the longest ttl {longest:?} of the quorum"
    );
    not_served(
        what,
        "choose a shorter min_hold or window, or a longer longest_ttl in every process",
    )
}

/// The error when another call for the same acquisition has not ended in time.
pub(crate) fn still_tried() -> StoreError {
    let what = "an earlier try for it has not ended: too few nodes answer it";
    StoreError::new(StoreErrorKind::Indeterminate, what, "check the nodes and the network")
}

/// Readers who share a lease: a majority cannot tell when the last one is gone.
// ADR 0050
pub(crate) fn no_readers() -> StoreError {
    not_served(
        "a quorum has no readers",
        "acquire the lock to write, or use one server, Sentinel or a Cluster",
    )
}

/// Acknowledgements of replicas.
pub(crate) fn no_replicas() -> StoreError {
    not_served(
        "a quorum waits for a majority of its nodes, not for replicas",
        "leave replication() out; more nodes make the quorum safer",
    )
}

/// An answer that does not belong to its command.
pub(crate) fn strange() -> StoreError {
    StoreError::new(
        StoreErrorKind::Corrupt,
        "a node gave an answer that does not belong to its command",
        "use versions of Leasehold with one layout per namespace",
    )
}

#[cfg(test)]
mod tests {
    use super::*;

    fn down(place: &str) -> StoreError {
        let (what, remedy) = ("connection refused", "check that the server runs");
        StoreError::new(StoreErrorKind::Definite, what, remedy).from_endpoint(place)
    }

    fn denied(place: &str) -> StoreError {
        let (what, remedy) = ("NOPERM", "grant the right");
        StoreError::new(StoreErrorKind::Config, what, remedy).as_answer().from_endpoint(place)
    }

    fn refused(place: &str) -> StoreError {
        let (what, remedy) = ("WRONGPASS", "give another password");
        let error = StoreError::new(StoreErrorKind::Definite, what, remedy).as_answer();
        error.refused_login().from_endpoint(place)
    }

    fn told(failures: &[StoreError]) -> StoreError {
        too_few(failures.len(), 3, failures, false)
    }

    #[test]
    fn what_a_majority_refuses_lasts() {
        for (failures, kind, is_login) in [
            (vec![denied("a"), denied("b")], StoreErrorKind::Config, false),
            (vec![denied("a"), refused("b")], StoreErrorKind::Config, false),
            (vec![refused("a"), refused("b"), down("c")], StoreErrorKind::Definite, true),
            // One that comes back is enough.
            (vec![denied("a"), down("b")], StoreErrorKind::Definite, false),
            (vec![refused("a"), down("b"), down("c")], StoreErrorKind::Definite, false),
        ] {
            let error = told(&failures);
            assert_eq!((error.kind(), error.is_refused_login()), (kind, is_login), "{error}");
        }
    }

    #[test]
    fn all_causes_are_told_and_the_worst_has_the_remedy() {
        let out = |place| out(place, Some(Duration::from_secs(20)));
        for failures in [[down("a"), out("b"), down("c")], [out("b"), down("a"), down("c")]] {
            let text = told(&failures).to_string();
            for words in ["3 of 3 nodes", "connection refused (at a, c)", "20.0 s (at b)"] {
                assert!(text.contains(words), "no {words:?} in: {text}");
            }
            assert!(text.ends_with("; check that the server runs"), "{text}");
        }
        assert!(told(&[out("a"), out("b")]).remedy().starts_with("wait"));
        assert!(too_few(2, 3, &[], true).to_string().contains("did not answer in time"));
    }

    /// A login that one node refuses is not all: the others will count by themselves.
    #[test]
    fn what_helps_as_well_is_told_beside_a_login() {
        let out = |place| out(place, Some(Duration::from_secs(20)));
        for failures in [[refused("a"), out("b"), out("c")], [out("b"), refused("a"), out("c")]] {
            let error = told(&failures);
            for remedy in ["give another password", "wait; it stays out"] {
                assert!(error.remedy().contains(remedy), "{error}");
            }
        }
    }

    /// A vote ends when no majority is left: what the others would say is not known.
    #[test]
    fn nodes_that_nobody_heard_are_not_taken_for_well() {
        assert!(told(&[down("a"), down("b")]).what().starts_with("at least 2 of 3 nodes"));
        assert!(told(&[down("a"), down("b"), down("c")]).what().starts_with("3 of 3 nodes"));
    }

    #[test]
    fn an_answer_is_that_of_a_majority() {
        assert!(told(&[denied("a"), denied("b")]).is_answer());
        assert!(told(&[denied("a"), down("b")]).is_answer(), "and the third may answer");
        assert!(!told(&[denied("a"), down("b"), down("c")]).is_answer());
        assert!(!too_few(2, 3, &[], true).is_answer());
    }
}
