use std::borrow::Cow;

use leasehold_core::{StoreError, StoreErrorKind};
use object_store::{Error, path::Path};

pub(super) fn of_look(error: &Error, path: &Path) -> StoreError {
    of(error, path, StoreErrorKind::Definite)
}

/// The error of a failed write: it may have happened, unless the store cannot or must not write.
pub(super) fn of_write(error: &Error, path: &Path) -> StoreError {
    if matches!(error, Error::NotFound { .. }) {
        return config(path, what(error), "create the bucket or container, or correct its name");
    }
    of(error, path, StoreErrorKind::Indeterminate)
}

/// Whether another write came before a conditional one, so that another look makes sense;
/// `replaces` says whether there was an object at the look.
pub(super) fn is_lost_race(error: &Error, replaces: bool) -> bool {
    match error {
        Error::Precondition { .. } | Error::AlreadyExists { .. } => true,
        // The object was deleted after the look; if there was none, the bucket is missing.
        Error::NotFound { .. } => replaces,
        _ => false,
    }
}

/// Another writer came first at every attempt.
pub(super) fn contended(path: &Path, attempts: u32) -> StoreError {
    StoreError::new(
        StoreErrorKind::Definite,
        format!("others changed the object during each of {attempts} attempts"),
        "nothing was written; try again while the lease is held, and find out who else writes",
    )
    .for_resource(path.as_ref())
}

/// An object was replaced, and has the ETag that it had before.
pub(super) fn same_etag(path: &Path) -> StoreError {
    config(
        path,
        "the write took place, but the ETag stayed the same, as the store makes it from the bytes \
         alone: a holder who looked before this write can still replace the object",
        "let the bytes differ with every lease, for instance by its stamp, or use a store whose \
         ETags change with every write (on S3: a bucket with SSE-KMS)",
    )
}

/// The ETag depends on the bytes alone, and the caller has not set `bytes_differ`.
pub(super) fn etags_of_bytes(path: &Path) -> StoreError {
    config(
        path,
        "the ETag is the same when the same bytes are written again: a holder who looked before \
         that can still replace the object",
        "let the bytes differ with every lease, for instance by its stamp, and say so with \
         bytes_differ(true); or use a store whose ETags change with every write (on S3: a bucket \
         with SSE-KMS)",
    )
}

/// The store does not compare versions, although `compares_versions` is set.
pub(super) fn compares_etags(path: &Path) -> StoreError {
    config(
        path,
        "the store compares ETags that are made from the bytes alone, and no versions",
        "leave compares_versions(true) out, and let the bytes differ with every lease",
    )
}

/// An object is too large to be written again for its metadata.
pub(super) fn too_large(path: &Path, size: u64, most: u64) -> StoreError {
    config(
        path,
        format!(
            "to move the watermark alone, all {size} bytes would have to be written again; the limit is {most}"
        ),
        "leave it to the first write, or raise the limit with max_rewritten()",
    )
}

pub(super) fn cannot(path: &Path, what: impl Into<Cow<'static, str>>) -> StoreError {
    config(
        path,
        what,
        "a gate needs metadata and conditional writes: use S3, Google Cloud Storage, Azure or a \
         store that is compatible, with conditional writes switched on",
    )
}

fn config(path: &Path, what: impl Into<Cow<'static, str>>, remedy: &'static str) -> StoreError {
    StoreError::new(StoreErrorKind::Config, what, remedy).for_resource(path.as_ref())
}

fn what(error: &Error) -> String {
    format!("the object store failed: {}", without_queries(&error.to_string()))
}

fn of(error: &Error, path: &Path, otherwise: StoreErrorKind) -> StoreError {
    let what = what(error);
    match error {
        Error::NotImplemented { .. } | Error::NotSupported { .. } => cannot(path, what),
        Error::PermissionDenied { .. } | Error::Unauthenticated { .. } => {
            let remedy = "give it credentials that may read and write this object and its metadata";
            config(path, what, remedy)
        }
        Error::UnknownConfigurationKey { .. } | Error::InvalidPath { .. } => {
            config(path, what, "correct the configuration or the path")
        }
        _ => StoreError::new(otherwise, what, "try again while the lease is held")
            .for_resource(path.as_ref()),
    }
}

/// Removes the queries of addresses, because they may have signatures.
fn without_queries(text: &str) -> String {
    let (mut kept, mut rest) = (String::new(), text);
    while let Some((before, query)) = rest.split_once('?') {
        kept.extend([before, "?…"]);
        let end = query.find(|c: char| c.is_whitespace() || matches!(c, ')' | '"' | '\''));
        rest = end.map_or("", |end| &query[end..]);
    }
    kept + rest
}

#[cfg(test)]
mod tests {
    use super::*;

    fn generic(text: &str) -> Error {
        Error::Generic { store: "S3", source: text.into() }
    }

    #[test]
    fn an_unanswered_write_may_have_happened_and_an_unanswered_look_wrote_nothing() {
        let (error, path) = (generic("connection reset"), Path::from("stock/7"));
        assert_eq!(of_look(&error, &path).kind(), StoreErrorKind::Definite);
        let written = of_write(&error, &path);
        assert_eq!(written.kind(), StoreErrorKind::Indeterminate);
        assert!(written.to_string().contains("\"stock/7\""), "{written}");
    }

    #[test]
    fn a_store_that_cannot_is_not_asked_again() {
        let error = Error::NotImplemented {
            operation: "`put_opts` with mode `PutMode::Update`".into(),
            implementer: "LocalFileSystem".into(),
        };
        let error = of_write(&error, &Path::from("a"));
        assert_eq!(error.kind(), StoreErrorKind::Config);
        assert!(error.to_string().contains("conditional writes"), "{error}");
    }

    #[test]
    fn no_signature_is_repeated() {
        let error = generic("PUT https://x.blob.example/a?sv=1&sig=c2VjcmV0 (timed out) in 3 s");
        let text = of_write(&error, &Path::from("a")).to_string();
        assert!(!text.contains("c2VjcmV0"), "{text}");
        assert!(text.contains("https://x.blob.example/a?… (timed out) in 3 s"), "{text}");
    }
}
