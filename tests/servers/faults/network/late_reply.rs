use std::time::Duration;

use leasehold::time::{Clock, Instant, SystemClock};
use leasehold_testkit::{
    CommandKind, Event, Gate, History, Violation,
    proxy::{Action, Rule},
};

use super::net::{ALONE, Net, on_one_thread, strictly_right};
use crate::support::{
    matrix::Row,
    naive::{NaiveHeld, NaiveLock},
    raw, wait,
};

const ROW: Row = Row {
    id: "late-reply",
    fault: "replies to acquires and releases come later than the ttl",
    right: "belief begins before the request is sent: never two believers",
    control: "a validity that begins with the reply",
};

/// Longer than the ttl of the plans.
const LATE: Duration = Duration::from_millis(1_300);

#[test]
fn late_reply() {
    ROW.run(protected, control);
}

fn protected() -> String {
    let net = Net::start();
    let crew = net.crew(&ALONE);
    let late = |kind| Rule::new(Action::Delay(LATE)).replies().on(kind);
    let replies = net.strike([late(CommandKind::Acquire), late(CommandKind::Release)], 2);
    crew.work(10);
    let finished = crew.finish();
    net.is_clean_soon();
    format!("{replies} replies late; {}", strictly_right(&finished))
}

fn control() -> String {
    const TTL: Duration = Duration::from_millis(1_500);
    let net = Net::start();
    on_one_thread(async {
        let mut one = NaiveLock::new(raw::connect(&net.url()).await, "a", TTL);
        let mut two = NaiveLock::new(raw::connect(&net.server.url()).await, "a", TTL);
        // From here on the server knows the scripts.
        let held = two.try_acquire().await.expect("an answer").expect("a free lock");
        assert!(two.release(&held).await.expect("an answer"));

        let gate = Gate::new();
        let late = Action::Hold(gate.clone());
        let rule = net.proxy.inject(Rule::new(late).replies().containing("EVALSHA"));
        let asking = tokio::spawn(async move { one.try_acquire().await });
        wait::until("the reply is held", || net.proxy.struck(rule) == 1).await;
        let taking = async {
            loop {
                if let Some(held) = two.try_acquire().await.expect("an answer") {
                    return (held, SystemClock.now());
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let second = wait::soon("the lock runs out", taking).await;
        gate.open();
        let first = wait::soon("the reply comes", asking).await.expect("a task");
        let first = first.expect("an answer").expect("the lock was free");
        overlap((first, SystemClock.now()), second)
    })
}

/// Says for how long both believe in what they have.
fn overlap(first: (NaiveHeld, Instant), second: (NaiveHeld, Instant)) -> String {
    let events = [(0, first), (1, second)].map(|(worker, (held, granted_at))| {
        let NaiveHeld { lease, fence, asked_at, until } = held;
        [
            Event::Granted { worker, fence, lease, asked_at, granted_at },
            Event::BelievedUntil { lease, until },
        ]
    });
    let history: History = events.into_iter().flatten().collect();
    let found = history.check_strictly().expect_err("the control came to no harm");
    let both = found.iter().find_map(|violation| match violation {
        Violation::TwoBelievers(overlap) => Some(overlap.by),
        _ => None,
    });
    let by = both.unwrap_or_else(|| panic!("{found:#?}"));
    format!("two holders believed for {} ms", by.as_millis())
}
