use metrics::{Unit, describe_counter, describe_gauge, describe_histogram};

use super::names;

/// Tells the installed recorder the unit and meaning of every metric.
///
/// The watchdog repeats this from time to time, so a recorder that is installed late learns it
/// too; call it yourself only to have the descriptions at once.
pub fn describe_metrics() {
    describe_counter!(names::ACQUIRE_TOTAL, Unit::Count, "Acquire calls by outcome");
    describe_histogram!(
        names::ACQUIRE_WAIT_SECONDS,
        Unit::Seconds,
        "Time from asking for a lock to holding it"
    );
    describe_counter!(
        names::CONTENDED_TOTAL,
        Unit::Count,
        "Acquire calls that found the lock taken"
    );
    describe_gauge!(names::WAITERS, Unit::Count, "Acquire calls that wait for a lock");
    describe_gauge!(
        names::LONGEST_WAIT_SECONDS,
        Unit::Seconds,
        "Longest time that an acquire call has been waiting by now"
    );
    describe_gauge!(names::HELD, Unit::Count, "Leases held by this process");
    describe_gauge!(
        names::OLDEST_HOLD_SECONDS,
        Unit::Seconds,
        "Longest time that a lease has been held by now"
    );
    describe_histogram!(names::HOLD_SECONDS, Unit::Seconds, "Time a lease was held, by its end");
    describe_counter!(
        names::WAKEUPS_TOTAL,
        Unit::Count,
        "Times a waiter was woken because it was its turn, by source"
    );
    describe_histogram!(
        names::QUEUE_POSITION,
        Unit::Count,
        "Tasks and runtimes before an acquire call that had to wait"
    );
    describe_histogram!(
        names::HANDOVER_SECONDS,
        Unit::Seconds,
        "Time from offering the lock to a waiter until it took it"
    );
    describe_histogram!(names::TURN_LEASES, Unit::Count, "Leases of one turn of this process");
    describe_counter!(names::RENEWALS_TOTAL, Unit::Count, "Renewals by outcome");
    describe_histogram!(names::RENEWAL_SECONDS, Unit::Seconds, "Round trip of a renewal command");
    describe_histogram!(
        names::RENEWAL_LAG_SECONDS,
        Unit::Seconds,
        "How late renewals were sent; a starved runtime shows here"
    );
    describe_histogram!(
        names::RENEWAL_MARGIN_SECONDS,
        Unit::Seconds,
        "Belief that was left when a renewal was confirmed"
    );
    describe_histogram!(
        names::RENEWAL_MARGIN_RATIO,
        Unit::Count,
        "Share of the ttl that was left when a renewal was confirmed"
    );
    describe_counter!(names::LOST_TOTAL, Unit::Count, "Lost leases by reason");
    describe_counter!(names::RELEASE_TOTAL, Unit::Count, "Releases by outcome and way");
    describe_counter!(
        names::FENCE_REJECTED_TOTAL,
        Unit::Count,
        "Writes that a gate refused for their stale fence"
    );
    describe_counter!(
        names::FENCE_REGRESSION_TOTAL,
        Unit::Count,
        "Grants at which the server's fence counter had lost data"
    );
    describe_gauge!(
        names::STORE_UNREACHABLE_SECONDS,
        Unit::Seconds,
        "How long the server has been out of reach by now"
    );
    describe_counter!(names::STORE_ERRORS_TOTAL, Unit::Count, "Failed store commands by kind");
}
