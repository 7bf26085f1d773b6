//! What a trace shows of locks: a span `acquire` for each call, and a span `hold` for each lease.
//!
//! Both are of level DEBUG, and their target is `leasehold::spans`. Where nobody listens to `acquire`, the check of
//! that is all that they cost: nothing is allocated, and no text is made.

use std::{fmt, sync::Arc};

use leasehold_core::{
    Clock, Instant, RuntimeLabel,
    lease::LossReason,
    metric::{AcquireOutcome, HoldEnd},
};
use leasehold_watchdog::HeldLease;
use tracing::{
    Span, debug_span,
    field::{Empty, display},
};

use crate::{
    error::AcquireError,
    wait::{AcquireCall, WaitLimit},
};

/// What filters select them by; `docs/guides/tracing.md` tells it.
const TARGET: &str = "leasehold::spans";

/// The span of an acquire, if anybody listens.
#[derive(Debug)]
pub(crate) struct AcquireSpan(Option<Box<Listened>>);

#[derive(Debug)]
struct Listened {
    span: Span,
    /// What the caller was in: the hold belongs to it, and outlives the acquire.
    caller: Span,
    clock: Arc<dyn Clock>,
    started: Instant,
}

impl AcquireSpan {
    /// Begins it; the second one is to be entered for as long as the call is polled.
    pub(crate) fn of(call: &AcquireCall) -> (Self, Span) {
        let span = debug_span!(
            target: TARGET,
            "acquire",
            otel.kind = server(call).map_or("internal", |_| "client"),
            otel.status_code = Empty,
            otel.status_description = Empty,
            db.system.name = server(call),
            db.operation.name = server(call).map(|_| "acquire"),
            "error.type" = Empty,
            leasehold.lock = %call.name,
            leasehold.class = call.metrics.class().as_str(),
            leasehold.label = %label(call),
            leasehold.ttl = call.terms.ttl.get().as_secs_f64(),
            leasehold.wait_limit = limit(call),
            leasehold.position = Empty,
            leasehold.wait = Empty,
            leasehold.outcome = Empty,
            leasehold.fence = Empty,
        );
        if span.is_disabled() {
            return (Self(None), span);
        }
        let clock = Arc::clone(&call.engine.clock);
        let (caller, started) = (Span::current(), call.started);
        (Self(Some(Box::new(Listened { span: span.clone(), caller, clock, started }))), span)
    }

    /// The call has to wait, behind so many tasks and runtimes.
    pub(crate) fn waits(&self, behind: u64) {
        if let Some(Listened { span, .. }) = self.0.as_deref() {
            span.record("leasehold.position", signed(behind));
        }
    }

    /// The call has entered a lease.
    pub(crate) fn enters(&self, lease: &HeldLease) {
        if let Some(Listened { span, .. }) = self.0.as_deref() {
            span.record("leasehold.fence", signed(lease.fence().get()));
        }
    }

    /// The call has got a lease, whose hold begins. It ends with the lease.
    pub(crate) fn begins_hold(&self, call: &AcquireCall, lease: &HeldLease) {
        let Some(Listened { span, caller, .. }) = self.0.as_deref() else { return };
        self.enters(lease);
        let hold = debug_span!(
            target: TARGET,
            parent: caller,
            "hold",
            otel.status_code = Empty,
            otel.status_description = Empty,
            "error.type" = Empty,
            leasehold.lock = %call.name,
            leasehold.class = call.metrics.class().as_str(),
            leasehold.label = %label(call),
            leasehold.ttl = call.terms.ttl.get().as_secs_f64(),
            leasehold.fence = signed(lease.fence().get()),
            leasehold.end = Empty,
        );
        if hold.is_disabled() {
            return;
        }
        hold.follows_from(span);
        lease.on_end(move |end: HoldEnd, lost| {
            hold.record("leasehold.end", end.as_label());
            match lost {
                // Its own process asked for the end.
                None | Some(LossReason::Shutdown) => {}
                Some(reason) => fails(&hold, reason.as_label(), reason),
            }
        });
    }

    /// The call has failed.
    pub(crate) fn failed(&self, error: &AcquireError, outcome: AcquireOutcome) {
        let Some(Listened { span, .. }) = self.0.as_deref() else { return };
        // A try that finds the lock taken has done what it was to do.
        if outcome != AcquireOutcome::Busy {
            fails(span, outcome.as_label(), error);
        }
    }

    /// The call is over, or its future was dropped.
    pub(crate) fn ends(&self, outcome: AcquireOutcome) {
        let Some(Listened { span, clock, started, .. }) = self.0.as_deref() else { return };
        span.record("leasehold.outcome", outcome.as_label());
        span.record("leasehold.wait", clock.now().saturating_since(*started).as_secs_f64());
    }
}

/// What a call asks, unless the locks are in this process.
// ADR 0049
fn server(call: &AcquireCall) -> Option<&'static str> {
    (!call.engine.store.ends_with_process()).then_some("redis")
}

/// What others see as the holder.
fn label(call: &AcquireCall) -> &RuntimeLabel {
    call.label.as_ref().unwrap_or(&call.engine.label)
}

/// For how many seconds a call waits at most; `None` without a limit.
fn limit(call: &AcquireCall) -> Option<f64> {
    match call.limit {
        WaitLimit::Try => Some(0.0),
        WaitLimit::For(wait) => Some(wait.as_secs_f64()),
        WaitLimit::Forever => None,
    }
}

/// Marks a span as failed, in the words of OpenTelemetry.
fn fails(span: &Span, kind: &'static str, why: impl fmt::Display) {
    span.record("error.type", kind);
    span.record("otel.status_code", "ERROR");
    span.record("otel.status_description", display(why));
}

/// Subscribers for OpenTelemetry know no other whole number: they would make a text of it. A fence is below 2^53.
fn signed(number: u64) -> i64 {
    i64::try_from(number).unwrap_or(i64::MAX)
}
