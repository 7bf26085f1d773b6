use std::{borrow::Cow, time::Duration};

use leasehold_core::{StoreError, StoreErrorKind};

/// The error of a command that too few nodes have answered.
pub(crate) fn too_few(
    answered: usize,
    nodes: usize,
    failures: &[StoreError],
    may_have_run: bool,
) -> StoreError {
    let what = format!("{answered} of {nodes} nodes answered, which is no majority");
    failed(&what, failures, may_have_run)
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
         majority, and {missing} did not answer"
    );
    failed(&what, failures, false).as_answer()
}

/// The reason is the error of the worst node.
fn failed(what: &str, failures: &[StoreError], may_have_run: bool) -> StoreError {
    let worst = failures.iter().find(|error| !error.kind().is_transient());
    let why = worst.or_else(|| failures.first());
    let unheard = ("they did not answer in time", "check the nodes and the network");
    let (detail, remedy) = why.map_or(unheard, |error| (error.what(), error.remedy()));
    let what = format!("{what}: {detail}");
    let kind = match worst {
        Some(error) => error.kind(),
        None if may_have_run => StoreErrorKind::Indeterminate,
        None => StoreErrorKind::Definite,
    };
    let error = StoreError::new(kind, what, remedy.to_owned());
    let error = if why.is_some_and(StoreError::is_ours) { error.ours() } else { error };
    if failures.iter().any(StoreError::is_answer) { error.as_answer() } else { error }
}

/// The error of a node that does not vote yet.
pub(crate) fn out(place: &str, rest: Option<Duration>) -> StoreError {
    let what = match rest {
        Some(rest) => format!(
            "{place} has lost data or is new, and counts again in {:.1} s",
            rest.as_secs_f64()
        ),
        None => format!("{place} has lost its data"),
    };
    let remedy = "wait; it stays out until no lease can be left that it has forgotten";
    StoreError::new(StoreErrorKind::Definite, what, remedy).as_answer()
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
        "use one version of Leasehold per namespace",
    )
}
