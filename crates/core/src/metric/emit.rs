use metrics::{Key, Label, Level, Metadata, SharedString, with_recorder};

static METADATA: Metadata<'static> = Metadata::new("leasehold", Level::INFO, Some("leasehold"));

/// A key with its labels, built once.
pub(super) fn key(name: &'static str, labels: &[(&'static str, SharedString)]) -> Key {
    let labels: Vec<Label> =
        labels.iter().map(|(name, value)| Label::new(*name, value.clone())).collect();
    Key::from_parts(name, labels)
}

pub(super) fn count(key: &Key, by: u64) {
    with_recorder(|recorder| recorder.register_counter(key, &METADATA).increment(by));
}

pub(super) fn record(key: &Key, value: f64) {
    with_recorder(|recorder| recorder.register_histogram(key, &METADATA).record(value));
}

pub(super) fn set(key: &Key, value: f64) {
    with_recorder(|recorder| recorder.register_gauge(key, &METADATA).set(value));
}
