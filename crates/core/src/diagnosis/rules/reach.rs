use crate::{
    diagnosis::{Finding, Severity, Topic},
    store::StoreError,
};

/// A server to which no connection could be made.
pub(super) fn judge(error: &StoreError) -> Finding {
    let (what, cure) = (error.what().to_owned(), error.remedy().to_owned());
    Finding::new(Severity::Danger, Topic::Reach, what, cure)
}
