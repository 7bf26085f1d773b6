use std::time::Duration;

use leasehold_testkit::{
    CommandKind, Gate,
    proxy::{Action, Rule},
};

use super::net::{ALONE, Net, strictly_right};
use crate::faults::server::two_believers;
use crate::support::{matrix::row, naive::NaiveLock, raw, wait};

row! {
    late_reply: protected, control;
    fault: "replies to acquires and releases come later than the ttl",
    right: "belief begins before the request is sent: never two believers",
    control: "a validity that begins with the reply",
}

/// Longer than the ttl of the plans.
const LATE: Duration = Duration::from_millis(1_300);

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
    wait::on_one_thread(async {
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
                    return held;
                }
                tokio::time::sleep(Duration::from_millis(2)).await;
            }
        };
        let second = wait::soon("the lock runs out", taking).await;
        gate.open();
        let first = wait::soon("the reply comes", asking).await.expect("a task");
        let first = first.expect("an answer").expect("the lock was free");
        two_believers::overlap(&first, &second)
    })
}
