use std::{collections::BTreeMap, sync::Arc};

use super::{
    describe::describe_metrics,
    series::{ClassMetrics, StoreMetrics},
};
use crate::{clock::Instant, mutex::Mutex, types::Class};

/// All series of one runtime: those of the runtime itself, and those of each class it has seen.
#[derive(Debug, Default)]
pub struct Metrics {
    store: StoreMetrics,
    classes: Mutex<BTreeMap<Class, Arc<ClassMetrics>>>,
}

impl Metrics {
    /// The greatest number of classes; locks of any further class are counted as `other`.
    pub const MAX_CLASSES: usize = 128;

    /// The series that concern the runtime as a whole.
    pub fn store(&self) -> &StoreMetrics {
        &self.store
    }

    /// The series of a class.
    pub fn class(&self, class: &Class) -> Arc<ClassMetrics> {
        let mut classes = self.classes.lock();
        if let Some(metrics) = classes.get(class) {
            return Arc::clone(metrics);
        }
        let class = if classes.len() < Self::MAX_CLASSES { class.clone() } else { Class::other() };
        let metrics =
            classes.entry(class.clone()).or_insert_with(|| Arc::new(ClassMetrics::new(class)));
        Arc::clone(metrics)
    }

    /// Describes every metric and shows every series to the recorder, wherever it came from; gauges
    /// as they stand at `now`.
    pub fn show(&self, now: Instant) {
        describe_metrics();
        self.store.show();
        let classes = self.classes.lock();
        for metrics in classes.values() {
            metrics.show(now);
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_bounded() {
        let metrics = Metrics::default();
        for i in 0..1000 {
            let class = Class::new(format!("class-{i}")).unwrap();
            let _ = metrics.class(&class);
        }
        let other = metrics.class(&Class::new("one-more").unwrap());
        assert_eq!(other.class().as_str(), "other");
        assert!(metrics.classes.lock().len() <= Metrics::MAX_CLASSES + 1);
    }
}
