use http::StatusCode;

/// An answer of a [`FenceLayer`](super::FenceLayer) instead of one of the service behind it.
///
/// The answer's body is `application/problem+json` (RFC 9457), and its `type` is
/// [`type_uri`](Self::type_uri).
#[derive(Debug, Clone, Copy, PartialEq, Eq, Hash)]
#[non_exhaustive]
pub enum Problem {
    /// 412: another holder has been admitted. Stop writing; do not repeat the request.
    StaleFence,
    /// 428: the request carries no stamp. Send it with the stamp of a lease.
    FenceMissing,
    /// 400: the headers of the request are not a valid stamp.
    FenceMalformed,
    /// 400: the resource of the request has no name that a gate can keep. Correct the address.
    ResourceMalformed,
    /// 503: too many requests wait for the resource, or this one has waited for too long. Repeat it
    /// later, while the lease is held.
    Busy,
    /// 503: the storage of the gate did not answer. Repeat it later, while the lease is held.
    GateUnavailable,
    /// 500: the gate cannot work until an operator corrects the server.
    GateBroken,
}

impl Problem {
    /// Every problem.
    pub const ALL: &[Self] = &[
        Self::StaleFence,
        Self::FenceMissing,
        Self::FenceMalformed,
        Self::ResourceMalformed,
        Self::Busy,
        Self::GateUnavailable,
        Self::GateBroken,
    ];

    /// The status of the answer.
    pub fn status(self) -> StatusCode {
        match self {
            Self::StaleFence => StatusCode::PRECONDITION_FAILED,
            Self::FenceMissing => StatusCode::PRECONDITION_REQUIRED,
            Self::FenceMalformed | Self::ResourceMalformed => StatusCode::BAD_REQUEST,
            Self::Busy | Self::GateUnavailable => StatusCode::SERVICE_UNAVAILABLE,
            Self::GateBroken => StatusCode::INTERNAL_SERVER_ERROR,
        }
    }

    /// The `type` of the answer's body: by it a client tells this problem from others with the
    /// same status.
    pub fn type_uri(self) -> &'static str {
        self.type_and_title().0
    }

    /// The `title` of the answer's body.
    pub fn title(self) -> &'static str {
        self.type_and_title().1
    }

    fn type_and_title(self) -> (&'static str, &'static str) {
        match self {
            Self::StaleFence => (of_variant!("StaleFence"), "The fence is stale"),
            Self::FenceMissing => (of_variant!("FenceMissing"), "The fence is missing"),
            Self::FenceMalformed => (of_variant!("FenceMalformed"), "The fence is malformed"),
            Self::ResourceMalformed => {
                (of_variant!("ResourceMalformed"), "The resource has no valid name")
            }
            Self::Busy => (of_variant!("Busy"), "The resource is busy"),
            Self::GateUnavailable => {
                (of_variant!("GateUnavailable"), "The fence could not be compared")
            }
            Self::GateBroken => (of_variant!("GateBroken"), "The fence cannot be compared"),
        }
    }

    /// Whether the same request may succeed later without any correction.
    pub fn is_transient(self) -> bool {
        self.status() == StatusCode::SERVICE_UNAVAILABLE
    }
}

/// Where a variant is documented.
macro_rules! of_variant {
    ($name:literal) => {
        concat!(
            "https://docs.rs/leasehold/latest/leasehold/fencing/http/enum.Problem.html#variant.",
            $name
        )
    };
}
use of_variant;

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;

    #[test]
    fn every_problem_has_a_type_that_names_it() {
        let uris: BTreeSet<_> = Problem::ALL.iter().map(|problem| problem.type_uri()).collect();
        assert_eq!(uris.len(), Problem::ALL.len());
        for problem in Problem::ALL {
            assert!(problem.type_uri().ends_with(&format!("#variant.{problem:?}")));
        }
    }
}
