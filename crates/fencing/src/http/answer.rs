use http::{HeaderValue, Response, StatusCode, header};

use super::{headers::HeaderError, layer::Unnamed, service::FencedBody};
use crate::error::{GateError, ResourceError, StaleFence};

/// An answer of the layer instead of one of the service. Its text is for the client: details of a
/// failure on the server go to its log only.
#[derive(Debug, thiserror::Error)]
pub(super) enum Answer {
    #[error(
        "what the request writes to cannot be named, nothing was written: {}; correct its address",
        .0.reason()
    )]
    Unnamed(Unnamed),
    #[error(transparent)]
    Header(#[from] HeaderError),
    #[error(
        "too many requests wait for {0:?}, nothing was written; repeat this one later, while the \
         lease is held"
    )]
    Crowded(Box<str>),
    #[error(
        "the requests for {0:?} before this one took too long, nothing was written; repeat it \
         later, while the lease is held"
    )]
    Slow(Box<str>),
    /// The gate has admitted the request.
    #[error(
        "the service was not ready in time, nothing was written to {0:?}; repeat the request \
         later, while the lease is held"
    )]
    NotReady(Box<str>),
    // Without the id of the other lease: a client could use that id to send a request in its name.
    #[error(
        "a write to {:?} was refused: its fence {} is stale, the gate has seen {} of another \
         lease, which has taken over; stop writing and acquire the lock again",
        .0.resource, .0.presented.fence, .0.highest.fence
    )]
    Stale(StaleFence),
    #[error("nothing was written: {0}")]
    Resource(ResourceError),
    #[error(
        "another transaction on the fence of {0:?} came between, nothing was written; repeat the \
         request at once"
    )]
    Conflict(Box<str>),
    #[error(
        "the storage that knows the fences of {0:?} did not answer, nothing was written; repeat \
         the request later, while the lease is held"
    )]
    Unanswered(Box<str>),
    #[error(
        "the gate of {0:?} cannot work, nothing was written; the server's log says what has to be \
         changed"
    )]
    Broken(Box<str>),
}

impl Answer {
    /// The gate took too long.
    pub(super) fn unanswered(resource: &str) -> Self {
        tracing::warn!(resource, "the gate before a request did not answer in time");
        Self::Unanswered(resource.into())
    }

    /// The gate did not admit a request.
    pub(super) fn refused(error: GateError, resource: &str) -> Self {
        match error {
            GateError::Stale(stale) => Self::Stale(stale),
            // The client chose the name, so an operator has nothing to do.
            GateError::Resource(error) => Self::Resource(error),
            GateError::Conflict(_) => Self::Conflict(resource.into()),
            GateError::Store(error) if error.kind().is_transient() => {
                tracing::warn!(resource, %error, "the gate before a request could not be asked");
                Self::Unanswered(resource.into())
            }
            error => {
                tracing::error!(resource, %error, "the gate before a request cannot work");
                Self::Broken(resource.into())
            }
        }
    }

    fn problem(&self) -> Problem {
        match self {
            Self::Unnamed(_) | Self::Resource(_) => Problem::ResourceMalformed,
            Self::Header(HeaderError::Missing { .. }) => Problem::FenceMissing,
            Self::Header(_) => Problem::FenceMalformed,
            Self::Crowded(_) | Self::Slow(_) | Self::NotReady(_) => Problem::Busy,
            Self::Stale(_) => Problem::StaleFence,
            Self::Conflict(_) | Self::Unanswered(_) => Problem::GateUnavailable,
            Self::Broken(_) => Problem::GateBroken,
        }
    }

    /// The answer as a response of the service.
    pub(super) fn into_response<B>(self) -> Response<FencedBody<B>>
    where
        B: http_body::Body,
        B::Data: From<String>,
    {
        let mut response = Response::new(FencedBody::of_refusal(self.body()));
        *response.status_mut() = self.problem().status();
        let headers = response.headers_mut();
        let problem_json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, problem_json);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.problem().is_transient() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    /// A JSON object.
    fn body(&self) -> String {
        let (problem, detail) = (self.problem(), quoted(&self.to_string()));
        let (uri, title, status) = (problem.type_uri(), problem.title(), problem.status().as_u16());
        let stale = match self {
            Self::Stale(StaleFence { presented, highest, resource }) => {
                let (resource, fence, highest) = (quoted(resource), presented.fence, highest.fence);
                format!(r#","resource":{resource},"fence":{fence},"highest_fence":{highest}"#)
            }
            _ => String::new(),
        };
        format!(
            r#"{{"type":"{uri}","title":"{title}","status":{status},"detail":{detail}{stale}}}"#
        )
    }
}

fn quoted(text: &str) -> String {
    let mut quoted = String::from('"');
    for c in text.chars() {
        match c {
            '"' | '\\' => quoted.extend(['\\', c]),
            c if c < ' ' => quoted.extend(["\\u", &format!("{:04x}", u32::from(c))]),
            c => quoted.push(c),
        }
    }
    quoted + "\""
}

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
    fn texts_are_quoted() {
        assert_eq!(quoted("say \"1\\2\"\n\0ä"), r#""say \"1\\2\"\u000a\u0000ä""#);
        assert_eq!(quoted(""), r#""""#);
    }

    #[test]
    fn every_problem_has_a_type_that_names_it() {
        let uris: BTreeSet<_> = Problem::ALL.iter().map(|problem| problem.type_uri()).collect();
        assert_eq!(uris.len(), Problem::ALL.len());
        for problem in Problem::ALL {
            assert!(problem.type_uri().ends_with(&format!("#variant.{problem:?}")));
        }
    }
}
