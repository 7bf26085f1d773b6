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

/// Defines the parts of each problem once.
macro_rules! problems {
    ($($variant:ident => $status:ident, $title:literal;)+) => {
        impl Problem {
            /// Every problem.
            pub const ALL: &[Self] = &[$(Self::$variant,)+];

            /// The status, the address at which the variant is documented, and the title.
            fn parts(self) -> (StatusCode, &'static str, &'static str) {
                match self {
                    $(Self::$variant => (
                        StatusCode::$status,
                        concat!(
                            "https://docs.rs/leasehold/latest/leasehold/fencing/http/enum.Problem.html#variant.",
                            stringify!($variant)
                        ),
                        $title,
                    ),)+
                }
            }
        }
    };
}

problems! {
    StaleFence => PRECONDITION_FAILED, "The fence is stale";
    FenceMissing => PRECONDITION_REQUIRED, "The fence is missing";
    FenceMalformed => BAD_REQUEST, "The fence is malformed";
    ResourceMalformed => BAD_REQUEST, "The resource has no valid name";
    Busy => SERVICE_UNAVAILABLE, "The resource is busy";
    GateUnavailable => SERVICE_UNAVAILABLE, "The fence could not be compared";
    GateBroken => INTERNAL_SERVER_ERROR, "The fence cannot be compared";
}

impl Problem {
    /// Returns the status of the answer.
    pub fn status(self) -> StatusCode {
        self.parts().0
    }

    /// Returns the `type` of the answer's body: by it a client tells this problem from others with the
    /// same status.
    pub fn type_uri(self) -> &'static str {
        self.parts().1
    }

    /// Returns the `title` of the answer's body.
    pub fn title(self) -> &'static str {
        self.parts().2
    }

    /// Returns whether the same request may succeed later without any correction.
    pub fn is_transient(self) -> bool {
        self.status() == StatusCode::SERVICE_UNAVAILABLE
    }
}

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
