//! A subscriber that panics costs the call that it hears of, and leaves no lock taken.

use std::{
    fmt::Debug,
    sync::atomic::{AtomicBool, Ordering},
};

use tracing::{
    Event, Subscriber,
    field::{Field, Visit},
    span::{Id, Record},
};
use tracing_subscriber::{
    Layer,
    layer::{Context, SubscriberExt as _},
    registry::LookupSpan,
};

use crate::support::{World, lock};

/// When it panics.
#[derive(Debug, Clone, Copy)]
enum Moment {
    Event(&'static str),
    Field(&'static str),
    Close(&'static str),
}

/// Panics once.
struct Panics {
    at: Moment,
    is_over: AtomicBool,
}

impl Panics {
    fn panic(&self) {
        assert!(self.is_over.swap(true, Ordering::Relaxed), "{:?}", self.at);
    }
}

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Panics {
    fn on_event(&self, event: &Event<'_>, _: Context<'_, S>) {
        let Moment::Event(text) = self.at else { return };
        let mut seen = Seen(text, false);
        event.record(&mut seen);
        if seen.1 {
            self.panic();
        }
    }

    fn on_record(&self, _: &Id, record: &Record<'_>, _: Context<'_, S>) {
        let Moment::Field(name) = self.at else { return };
        let mut seen = Seen(name, false);
        record.record(&mut seen);
        if seen.1 {
            self.panic();
        }
    }

    fn on_close(&self, id: Id, context: Context<'_, S>) {
        let Moment::Close(name) = self.at else { return };
        if context.span(&id).is_some_and(|span| span.name() == name) {
            self.panic();
        }
    }
}

/// Looks for a field of this name, or for a message with this text.
struct Seen(&'static str, bool);

impl Visit for Seen {
    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        let is_message = field.name() == "message" && format!("{value:?}") == self.0;
        self.1 |= is_message || field.name() == self.0;
    }
}

#[tokio::test]
async fn a_subscriber_that_panics_leaves_no_lock_taken() {
    for at in [
        Moment::Event("acquired"),
        Moment::Field("leasehold.fence"),
        Moment::Field("leasehold.outcome"),
        Moment::Field("leasehold.wait"),
        Moment::Close("acquire"),
    ] {
        let world = World::new();
        let (locks, other) = (world.runtime(1), world.runtime(2));
        let panics = Panics { at, is_over: AtomicBool::new(false) };
        let listening =
            tracing::subscriber::set_default(tracing_subscriber::registry().with(panics));
        let ours = lock(&locks);
        let died = tokio::spawn(async move { drop(ours.acquire().await) }).await;
        drop(listening);
        assert!(died.is_err_and(|error| error.is_panic()), "{at:?}");
        assert_eq!(locks.footprint().watched, 0, "{at:?}");
        let guard = lock(&other).acquire().await.expect("the lock is free");
        drop(guard);
    }
}
