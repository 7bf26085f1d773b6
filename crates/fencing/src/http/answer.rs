use std::error::Error;

use http::{HeaderValue, Response, header};

use super::{body::FencedBody, headers::HeaderError, problem::Problem};
use crate::error::{GateError, StaleFence};

/// An answer of the layer instead of one of the service. Its text is for the client: details of a
/// failure on the server go to its log only.
#[derive(Debug)]
pub(super) struct Answer {
    problem: Problem,
    detail: String,
    stale: Option<StaleFence>,
}

impl Answer {
    pub(super) fn new(problem: Problem, detail: String) -> Self {
        Self { problem, detail, stale: None }
    }

    /// For a request that may be repeated. The detail ends with what to do; here is added when.
    pub(super) fn later(problem: Problem, detail: &str) -> Self {
        Self::new(problem, format!("{detail} later, while the lease is held"))
    }

    /// The gate took too long.
    pub(super) fn unanswered(resource: &str) -> Self {
        tracing::warn!(resource, "the gate before a request did not answer in time");
        Self::unavailable(resource)
    }

    fn unavailable(resource: &str) -> Self {
        let what = format!("the storage that knows the fences of {resource:?} did not answer");
        let detail = format!("{what}, nothing was written; repeat the request");
        Self::later(Problem::GateUnavailable, &detail)
    }

    /// The gate did not admit a request.
    pub(super) fn refused(error: GateError, resource: &str) -> Self {
        let (problem, detail) = match error {
            GateError::Stale(stale) => {
                // Without the id of the other lease: a client could use that id to send a request in its
                // name.
                let StaleFence { resource, presented, highest } = &stale;
                let detail = format!(
                    "a write to {resource:?} was refused: its fence {} is stale, the gate has seen {} of another \
                     lease, which has taken over; stop writing and acquire the lock again",
                    presented.fence, highest.fence
                );
                return Self { problem: Problem::StaleFence, detail, stale: Some(stale) };
            }
            // The client chose the name, so an operator has nothing to do.
            GateError::Resource(error) => {
                (Problem::ResourceMalformed, format!("nothing was written: {error}"))
            }
            GateError::Conflict(_) => {
                let what = format!("another transaction on the fence of {resource:?} came between");
                let detail = format!("{what}, nothing was written; repeat the request at once");
                (Problem::GateUnavailable, detail)
            }
            GateError::Store(error) if error.kind().is_transient() => {
                tracing::warn!(resource, %error, "the gate before a request could not be asked");
                return Self::unavailable(resource);
            }
            error => {
                tracing::error!(resource, %error, "the gate before a request cannot work");
                let what = format!("the gate of {resource:?} cannot work, nothing was written");
                let remedy = "the server's log says what has to be changed";
                (Problem::GateBroken, format!("{what}; {remedy}"))
            }
        };
        Self::new(problem, detail)
    }

    /// The answer as a response of the service.
    pub(super) fn into_response<B>(self) -> Response<FencedBody<B>>
    where
        B: http_body::Body,
        B::Data: From<String>,
    {
        let mut response = Response::new(FencedBody::of_refusal(self.body()));
        *response.status_mut() = self.problem.status();
        let headers = response.headers_mut();
        let problem_json = HeaderValue::from_static("application/problem+json");
        headers.insert(header::CONTENT_TYPE, problem_json);
        headers.insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
        if self.problem.is_transient() {
            headers.insert(header::RETRY_AFTER, HeaderValue::from_static("1"));
        }
        response
    }

    /// A JSON object.
    fn body(&self) -> String {
        let Self { problem, detail, stale } = self;
        let (uri, title, status) = (problem.type_uri(), problem.title(), problem.status().as_u16());
        let stale = stale.as_ref().map_or_else(String::new, |stale| {
            let (resource, fence) = (quoted(&stale.resource), stale.presented.fence);
            let highest = stale.highest.fence;
            format!(r#","resource":{resource},"fence":{fence},"highest_fence":{highest}"#)
        });
        let detail = quoted(detail);
        format!(
            r#"{{"type":"{uri}","title":"{title}","status":{status},"detail":{detail}{stale}}}"#
        )
    }
}

impl From<HeaderError> for Answer {
    fn from(error: HeaderError) -> Self {
        let problem = match error {
            HeaderError::Missing { .. } => Problem::FenceMissing,
            _ => Problem::FenceMalformed,
        };
        Self::new(problem, error.to_string())
    }
}

impl From<Unnamed> for Answer {
    fn from(Unnamed(reason): Unnamed) -> Self {
        let what = "what the request writes to cannot be named, nothing was written";
        Self::new(Problem::ResourceMalformed, format!("{what}: {reason}; correct its address"))
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

/// Why the resource of a request has no name: the answer is 400, with this reason.
///
/// `?` converts every error to this type, such as that of an extractor. Its text is sent to the
/// client.
#[derive(Debug, Clone, PartialEq, Eq)]
pub struct Unnamed(Box<str>);

impl Unnamed {
    /// The longest reason that is sent to the client.
    const MAX_CHARS: usize = 200;

    /// Makes a reason of your own; text after 200 characters is cut off.
    pub fn because(reason: &str) -> Self {
        Self(reason.chars().take(Self::MAX_CHARS).collect())
    }
}

impl<E: Error> From<E> for Unnamed {
    fn from(error: E) -> Self {
        Self::because(&error.to_string())
    }
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
