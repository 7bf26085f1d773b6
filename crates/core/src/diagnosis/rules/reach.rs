use crate::{
    diagnosis::{Finding, Severity, Topic, facts::Topology},
    store::StoreError,
};

/// A server to which no connection could be made.
pub(super) fn judge(error: &StoreError, topology: &Topology) -> Finding {
    let (what, cure) = (error.what().to_owned(), error.remedy().to_owned());
    // The others go on; that too few are left is a finding of its own.
    let is_one_of_many = matches!(topology, Topology::Quorum(_));
    let severity = if is_one_of_many { Severity::Warning } else { Severity::Danger };
    Finding::new(severity, Topic::Reach, what, cure)
}
