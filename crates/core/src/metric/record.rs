use metrics::{Key, Level, Metadata, with_recorder};

static METADATA: Metadata<'static> = Metadata::new("leasehold", Level::INFO, Some("leasehold"));

pub(super) fn count(key: &Key, by: u64) {
    with_recorder(|recorder| recorder.register_counter(key, &METADATA).increment(by));
}

pub(super) fn record(key: &Key, value: f64) {
    with_recorder(|recorder| recorder.register_histogram(key, &METADATA).record(value));
}

pub(super) fn set(key: &Key, value: f64) {
    with_recorder(|recorder| recorder.register_gauge(key, &METADATA).set(value));
}
