use http::{HeaderValue, Response, header};

use super::{body::FencedBody, headers::HeaderError, name::Unnamed, problem::Problem};
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

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_quoted() {
        assert_eq!(quoted("say \"1\\2\"\n\0ä"), r#""say \"1\\2\"\u000a\u0000ä""#);
        assert_eq!(quoted(""), r#""""#);
    }
}
