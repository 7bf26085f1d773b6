use http::{HeaderValue, Response, header};
use leasehold_core::Stamp;

use super::{
    body::FencedBody,
    headers::{HeaderError, read_stamp},
    json::Object,
    name::Unnamed,
    problem::Problem,
};
use crate::error::{GateError, StaleFence};

/// An answer of the layer instead of one of the service.
#[derive(Debug)]
pub(super) struct Answer {
    problem: Problem,
    detail: String,
    stale: Option<StaleFence>,
}

impl Answer {
    /// Reads the stamp of a request, or says what is wrong with it.
    pub(super) fn unless_stamped(headers: &http::HeaderMap) -> Result<Stamp, Self> {
        read_stamp(headers).map_err(|error| {
            let problem = match error {
                HeaderError::Missing { .. } => Problem::FenceMissing,
                HeaderError::Malformed { .. } | HeaderError::Repeated { .. } => {
                    Problem::FenceMalformed
                }
            };
            Self::new(problem, error.to_string())
        })
    }

    /// Too many requests wait for a resource.
    pub(super) fn busy(resource: &str) -> Self {
        let detail = format!(
            "too many requests wait for {resource:?}, nothing was written; repeat this one later, \
             while the lease is held"
        );
        Self::new(Problem::Busy, detail)
    }

    /// The earlier requests take too long.
    pub(super) fn slow(resource: &str) -> Self {
        let detail = format!(
            "the requests for {resource:?} before this one took too long, nothing was written; repeat \
             it later, while the lease is held"
        );
        Self::new(Problem::Busy, detail)
    }

    /// The service behind was not ready for a request that the gate has admitted.
    pub(super) fn not_ready(resource: &str) -> Self {
        let detail = format!(
            "the service was not ready in time, nothing was written to {resource:?}; repeat the \
             request later, while the lease is held"
        );
        Self::new(Problem::Busy, detail)
    }

    /// The gate took too long.
    pub(super) fn unanswered(resource: &str) -> Self {
        tracing::warn!(resource, "the gate before a request did not answer in time");
        Self::new(Problem::GateUnavailable, did_not_answer(resource))
    }

    /// The resource of a request has no name.
    pub(super) fn unnamed(unnamed: &Unnamed) -> Self {
        let detail = format!(
            "what the request writes to cannot be named, nothing was written: {}; correct its \
             address",
            unnamed.reason()
        );
        Self::new(Problem::ResourceMalformed, detail)
    }

    /// The gate did not admit a request. Details of a failure on the server go to its log only.
    pub(super) fn refused(error: GateError, resource: &str) -> Self {
        match error {
            GateError::Stale(stale) => {
                // Without the id of the other lease: a client could use that id to send a request
                // in its name.
                let detail = format!(
                    "a write to {:?} was refused: its fence {} is stale, the gate has seen {} of \
                     another lease, which has taken over; stop writing and acquire the lock again",
                    stale.resource, stale.presented.fence, stale.highest.fence
                );
                Self { problem: Problem::StaleFence, detail, stale: Some(stale) }
            }
            GateError::Conflict(_) => {
                let detail = format!(
                    "another transaction on the fence of {resource:?} came between, nothing was \
                     written; repeat the request at once"
                );
                Self::new(Problem::GateUnavailable, detail)
            }
            GateError::Store(error) if error.kind().is_transient() => {
                tracing::warn!(resource, %error, "the gate before a request could not be asked");
                Self::new(Problem::GateUnavailable, did_not_answer(resource))
            }
            // The client chose the name, so an operator has nothing to do.
            GateError::Resource(error) => {
                let detail = format!("nothing was written: {error}");
                Self::new(Problem::ResourceMalformed, detail)
            }
            error => {
                tracing::error!(resource, %error, "the gate before a request cannot work");
                let detail = format!(
                    "the gate of {resource:?} cannot work, nothing was written; the server's log \
                     says what has to be changed"
                );
                Self::new(Problem::GateBroken, detail)
            }
        }
    }

    fn new(problem: Problem, detail: String) -> Self {
        Self { problem, detail, stale: None }
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

    fn body(&self) -> String {
        let body = Object::new()
            .text("type", self.problem.type_uri())
            .text("title", self.problem.title())
            .number("status", self.problem.status().as_u16().into())
            .text("detail", &self.detail);
        let Some(StaleFence { presented, highest, resource }) = &self.stale else {
            return body.finish();
        };
        body.text("resource", resource)
            .number("fence", presented.fence.get())
            .number("highest_fence", highest.fence.get())
            .finish()
    }
}

fn did_not_answer(resource: &str) -> String {
    format!(
        "the storage that knows the fences of {resource:?} did not answer, nothing was written; \
         repeat the request later, while the lease is held"
    )
}
