use std::sync::{Arc, Mutex, PoisonError};

use leasehold_services::Outcome;
use opentelemetry::{
    Value,
    trace::{SpanId, Status},
};
use opentelemetry_sdk::{
    error::OTelSdkResult,
    trace::{SpanData, SpanExporter},
};

/// An exporter that keeps what it is given.
#[derive(Debug, Clone, Default)]
pub(crate) struct Seen(Arc<Mutex<Vec<SpanData>>>);

impl SpanExporter for Seen {
    async fn export(&self, batch: Vec<SpanData>) -> OTelSdkResult {
        self.0.lock().unwrap_or_else(PoisonError::into_inner).extend(batch);
        Ok(())
    }
}

impl Seen {
    /// What the trace shows, and what must be true of it.
    pub(crate) fn judge(&self, outcome: Outcome) -> Outcome {
        let spans = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        let [requests, acquires, mut holds] = ["request", "acquire", "hold"]
            .map(|name| spans.iter().filter(|span| span.name == name).collect::<Vec<_>>());
        holds.sort_by_key(|hold| hold.start_time);
        let with = |outcome| {
            acquires.iter().filter(|span| text(span, "leasehold.outcome") == outcome).count()
        };
        let waited =
            acquires.iter().filter(|span| number(span, "leasehold.position").is_some()).count();
        let lost: Vec<_> =
            holds.iter().filter(|span| text(span, "leasehold.end") == "lost").collect();

        // Each lease is one hold, which links to the acquire that got it.
        let is_of = |hold: &SpanData, acquire: &SpanData| {
            let links = &hold.links.links;
            links.iter().any(|link| link.span_context == acquire.span_context)
                && hold.parent_span_id == acquire.parent_span_id
                && number(hold, "leasehold.fence") == number(acquire, "leasehold.fence")
        };
        let has_its_hold = |acquire: &&SpanData| {
            let of_it = holds.iter().filter(|hold| is_of(hold, acquire)).count();
            of_it == usize::from(text(acquire, "leasehold.outcome") == "acquired")
        };
        let linked = acquires.iter().all(has_its_hold);
        let roots: Vec<SpanId> =
            requests.iter().map(|request| request.span_context.span_id()).collect();
        let in_a_request =
            acquires.iter().chain(&holds).all(|span| roots.contains(&span.parent_span_id));
        let lost_as_errors = lost.iter().all(|hold| {
            matches!(&hold.status, Status::Error { description } if !description.is_empty())
                && text(hold, "error.type") == "force_released"
        });
        // Nobody gets the lock before its last holder has begun to hold it.
        let grow = holds.is_sorted_by(|one, next| {
            number(one, "leasehold.fence") < number(next, "leasehold.fence")
        });
        outcome
            .fact("requests", requests.len())
            .fact("leases acquired", with("acquired"))
            .fact("calls that waited", waited)
            .fact("locks found taken", with("busy"))
            .fact("leases lost", lost.len())
            .holds("every call and every hold is a part of a request", in_a_request)
            .holds("each lease has one hold, with its fence", linked)
            .holds("the lost lease is an error", lost.len() == 1 && lost_as_errors)
            .holds("one try found the lock taken", with("busy") == 1)
            .holds("fences grow", grow && holds.len() == requests.len())
    }
}

fn value<'a>(span: &'a SpanData, key: &str) -> Option<&'a Value> {
    span.attributes.iter().find(|attribute| attribute.key.as_str() == key).map(|found| &found.value)
}

fn text(span: &SpanData, key: &str) -> String {
    value(span, key).map(ToString::to_string).unwrap_or_default()
}

fn number(span: &SpanData, key: &str) -> Option<i64> {
    match value(span, key)? {
        Value::I64(number) => Some(*number),
        _ => None,
    }
}
