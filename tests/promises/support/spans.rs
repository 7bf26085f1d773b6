use std::{
    collections::BTreeMap,
    fmt::Debug,
    sync::{Arc, Mutex, OnceLock},
};

use tracing::{
    Dispatch, Event, Subscriber,
    field::{Field, Visit},
    span::{Attributes, Id, Record},
    subscriber::DefaultGuard,
};
use tracing_subscriber::{
    EnvFilter, Layer, Registry,
    layer::{Context, SubscriberExt},
    registry::LookupSpan,
};

/// The spans that a service sees on this thread, in the order in which they began.
#[derive(Debug, Clone, Default)]
pub(crate) struct Spans(Arc<Mutex<Vec<SeenSpan>>>);

/// A span as far as it is known.
#[derive(Debug, Clone)]
pub(crate) struct SeenSpan {
    pub(crate) name: &'static str,
    pub(crate) parent: Option<&'static str>,
    /// The names of the spans that it follows.
    pub(crate) follows: Vec<&'static str>,
    /// The messages of the events in it.
    pub(crate) events: Vec<String>,
    pub(crate) is_over: bool,
    fields: BTreeMap<&'static str, String>,
}

impl SeenSpan {
    /// The value of a field as text; empty if it was not recorded.
    pub(crate) fn field(&self, name: &str) -> &str {
        self.fields.get(name).map_or("", |value| value)
    }

    /// The values of some fields.
    pub(crate) fn fields<const N: usize>(&self, names: [&str; N]) -> [&str; N] {
        names.map(|name| self.field(name))
    }
}

impl Spans {
    /// Collects those that a filter lets through, until the guard is dropped.
    pub(crate) fn filtered(filter: &str) -> (Self, DefaultGuard) {
        // As for the testkit's `Log`: with a single subscriber, tracing remembers for good that nobody listens at a
        // place which another thread reaches first.
        static SECOND: OnceLock<Dispatch> = OnceLock::new();
        SECOND.get_or_init(|| Dispatch::new(Registry::default()));
        let spans = Self::default();
        let filter = EnvFilter::try_new(filter).expect("a filter");
        let subscriber = Registry::default().with(filter).with(spans.clone());
        (spans, tracing::subscriber::set_default(subscriber))
    }

    /// All of a name.
    pub(crate) fn named(&self, name: &str) -> Vec<SeenSpan> {
        let spans = self.0.lock().unwrap();
        spans.iter().filter(|span| span.name == name).cloned().collect()
    }

    /// The one of a name.
    pub(crate) fn only(&self, name: &str) -> SeenSpan {
        let [span] = &self.named(name)[..] else { panic!("not one {name}: {self:?}") };
        span.clone()
    }

    fn change<S>(&self, id: &Id, ctx: &Context<'_, S>, change: impl FnOnce(&mut SeenSpan))
    where
        S: Subscriber + for<'a> LookupSpan<'a>,
    {
        let span = ctx.span(id).expect("a span that lives");
        let At(at) = *span.extensions().get().expect("it was seen");
        change(&mut self.0.lock().unwrap()[at]);
    }
}

/// Where a span stands among all.
struct At(usize);

impl<S: Subscriber + for<'a> LookupSpan<'a>> Layer<S> for Spans {
    fn on_new_span(&self, attributes: &Attributes<'_>, id: &Id, ctx: Context<'_, S>) {
        let span = ctx.span(id).expect("a span that lives");
        let mut fields = Fields::default();
        attributes.record(&mut fields);
        let mut spans = self.0.lock().unwrap();
        span.extensions_mut().insert(At(spans.len()));
        spans.push(SeenSpan {
            name: span.name(),
            parent: span.parent().map(|parent| parent.name()),
            follows: Vec::new(),
            events: Vec::new(),
            is_over: false,
            fields: fields.0,
        });
    }

    fn on_record(&self, id: &Id, record: &Record<'_>, ctx: Context<'_, S>) {
        let mut fields = Fields::default();
        record.record(&mut fields);
        self.change(id, &ctx, |span| span.fields.extend(fields.0));
    }

    fn on_follows_from(&self, id: &Id, follows: &Id, ctx: Context<'_, S>) {
        let name = ctx.span(follows).expect("a span that lives").name();
        self.change(id, &ctx, |span| span.follows.push(name));
    }

    fn on_event(&self, event: &Event<'_>, ctx: Context<'_, S>) {
        let Some(span) = ctx.event_span(event) else { return };
        let mut fields = Fields::default();
        event.record(&mut fields);
        let message = fields.0.remove("message").unwrap_or_default();
        self.change(&span.id(), &ctx, |span| span.events.push(message));
    }

    fn on_close(&self, id: Id, ctx: Context<'_, S>) {
        self.change(&id, &ctx, |span| span.is_over = true);
    }
}

#[derive(Default)]
struct Fields(BTreeMap<&'static str, String>);

impl Visit for Fields {
    fn record_str(&mut self, field: &Field, value: &str) {
        self.0.insert(field.name(), value.to_owned());
    }

    fn record_debug(&mut self, field: &Field, value: &dyn Debug) {
        self.0.insert(field.name(), format!("{value:?}"));
    }
}
