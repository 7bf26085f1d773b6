//! Without a recorder no metric allocates; alone in its process, because the counting allocator is
//! the global one, and no other test may install a recorder.

use std::time::Duration;

use allocation_counter::measure;
use leasehold::{LossReason, error::StoreErrorKind};
use leasehold_core::{
    Class, Instant, Ttl,
    metric::{
        AcquireOutcome, ClassMetrics, GateMetrics, HoldEnd, Metrics, ReleaseOutcome, ReleaseVia,
        RenewalOutcome, StoreMetrics, WakeSource,
    },
};

#[test]
fn metrics_do_not_allocate_without_a_recorder() {
    let class = ClassMetrics::new(Class::new("orders").unwrap());
    let (store, gate) = (StoreMetrics::default(), GateMetrics::new("memory"));
    let (time, at) = (Duration::from_millis(7), Instant::at(Duration::from_secs(9)));
    // Room for what goes on is made once.
    class.waits.began(at);
    class.holds.began(at);
    class.waits.ended(at);
    class.holds.ended(at);
    let counted = measure(|| {
        for _ in 0..100 {
            class.acquire(AcquireOutcome::Acquired);
            class.waited(time);
            class.contended();
            class.waits.began(at);
            class.holds.began(at);
            class.show(at + time);
            class.waits.ended(at);
            class.holds.ended(at);
            class.hold(HoldEnd::Released, time);
            class.wakeup(WakeSource::Local, time);
            class.queued(3);
            class.turn(8);
            class.renewal(RenewalOutcome::Renewed);
            class.renewal_margin(time, Ttl::default());
            class.lost(LossReason::Expired);
            class.release(ReleaseOutcome::Released, ReleaseVia::Drop);
            class.show(at);
            store.error(StoreErrorKind::Definite);
            store.regression();
            store.renewal(time);
            store.renewal_lag(time);
            store.unreachable(time);
            store.show();
            gate.rejected();
            gate.show();
        }
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
}

/// A class that was seen before costs nothing to find again, and nothing to show.
#[test]
fn a_known_class_is_found_without_allocation() {
    let metrics = Metrics::default();
    let class = Class::new("orders").unwrap();
    let known = metrics.class(&class);
    let counted = measure(|| {
        for _ in 0..100 {
            metrics.class(&class).contended();
            metrics.show(Instant::default());
        }
    });
    assert_eq!(counted.count_total, 0, "{counted:?}");
    assert_eq!(known.class(), &class);
}

/// The control: building the keys of a class allocates, and is seen to.
#[test]
fn the_counter_sees_allocations() {
    let counted = measure(|| drop(ClassMetrics::new(Class::default())));
    assert!(counted.count_total > 30, "{counted:?}");
}
