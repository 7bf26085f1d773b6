use std::{
    thread::{self, JoinHandle},
    time::Duration,
};

use leasehold_testkit::{
    LockText,
    proxy::{Action, Rule, RuleId},
};

use super::{
    naive,
    net::{Net, millis},
};
use crate::support::{idle, matrix::row, patient, wait};

row! {
    recall_lost: protected, control;
    fault: "messages that recall an idle lock are lost, or its process loses the right to its channel",
    right: "the next message recalls the lock; if all are lost, it opens when keep_idle is over",
    control: "a cached lock, renewed until a message recalls it",
}

/// Far longer than this row takes.
const TTL: Duration = Duration::from_secs(60);
/// Far longer than it takes until a message comes through.
const LONG: Duration = Duration::from_secs(20);
const SHORT: Duration = Duration::from_secs(3);

fn protected() -> String {
    let some = wait_for(LONG, |net| Some(net.proxy.inject(recalls_lost().times(3))));
    assert!(some.lost == 3 && some.after < LONG / 2, "{some:?}");
    let all = wait_for(SHORT, |net| Some(net.proxy.inject(recalls_lost().always())));
    assert!(all.lost > 1, "{all:?}");
    let right = wait_for(SHORT, |net| {
        net.server.command(&["ACL", "SETUSER", "app", "resetchannels"]);
        wait::block_until("its subscription is gone", || net.subscribers() == 0);
        None
    });
    for served in [&all, &right] {
        assert!(served.idle >= SHORT.mul_f64(0.9) && served.idle < TTL / 2, "{served:?}");
    }
    let [some, all, right] = [some, all, right].map(|served| served.after.as_millis());
    format!("3 lost: {some} ms; all lost: {all} ms; no right: {right} ms; keep_idle {SHORT:?}")
}

fn recalls_lost() -> Rule {
    Rule::new(Action::Drop).pushes().containing("wanted ")
}

/// What another process met that wanted an idle lock, by the server's time.
#[derive(Debug)]
struct Served {
    /// How many messages were lost.
    lost: u64,
    /// How long it waited.
    after: Duration,
    /// How long the lock was idle, or a little more.
    idle: Duration,
}

/// Another process waits for a lock that is idle for so long at most, while a fault strikes.
fn wait_for(keep_idle: Duration, fault: fn(&Net) -> Option<RuleId>) -> Served {
    let net = Net::start();
    let user = ["ACL", "SETUSER", "app", "on", ">s3cret", "~*", "&*", "+@all"];
    net.server.command(&user);
    wait::on_one_thread(async {
        let url = net.proxy.url_with("app", "s3cret", 0);
        let keeps = idle::builder(TTL, keep_idle).connect(&url).await.expect("the server answers");
        let others = patient::builder().ttl(TTL).claim_window(Duration::from_secs(1));
        let others = others.connect(&net.server.url()).await.expect("the server answers");
        let began_at = net.server.micros();
        let before = idle::make_idle(&keeps, "a").await;
        let rule = fault(&net);
        let asked_at = net.server.micros();
        let acquiring = others.lock("a").expect("a name").acquire().wait(wait::CEILING);
        let guard = acquiring.await.expect("a lease");
        assert!(guard.fence() > before.fence);
        let granted_at = LockText::of(&net.server, "leasehold:{a}:lease").lease().since;
        let since = |at| Duration::from_micros(granted_at.saturating_sub(at));
        let lost = rule.map_or(0, |rule| net.proxy.struck(rule));
        guard.release().await.expect("held to the end");
        for locks in [keeps, others] {
            let report = locks.shutdown(wait::CEILING).await;
            assert_eq!((report.held, report.unreleased), (0, Vec::new()));
        }
        net.is_clean_soon();
        Served { lost, after: since(asked_at), idle: since(began_at) }
    })
}

fn control() -> String {
    const TTL: Duration = Duration::from_secs(2);
    let net = Net::start();
    let cached = cache(&net.url(), TTL);
    let wants = || {
        net.server.query::<u64>(&["PUBLISH", RECALL, "wanted"]);
        naive::set_nx(&net.server.url(), LOCK, "other", &millis(TTL))
    };
    wait::block_until("it is recalled", wants);
    wait::block_until("its thread ends", || cached.is_finished());
    net.server.command(&["DEL", LOCK]);
    let _cached = cache(&net.url(), TTL);
    let rule = net.proxy.inject(Rule::new(Action::Drop).pushes().always());
    let since = net.server.micros();
    wait::block_until("more than a ttl passes", || {
        assert!(!wants(), "the control gave it up");
        Duration::from_micros(net.server.micros() - since) > TTL * 3 / 2
    });
    assert!(net.proxy.struck(rule) > 0);
    "still taken and renewed after 3s, ttl 2s; it ends with its process".into()
}

/// The lock of the control, and the channel on which it is recalled.
const LOCK: &str = "lock";
const RECALL: &str = "recall";

/// Takes a free lock, and renews it until a message comes, or the connection ends.
fn cache(url: &str, ttl: Duration) -> JoinHandle<()> {
    let url = url.to_owned();
    assert!(naive::set_nx(&url, LOCK, "cached", &millis(ttl)), "it is free");
    let mut connection = naive::connect(&url).expect("a connection");
    connection.set_read_timeout(Some(ttl / 4)).expect("a time above zero");
    // It ends with its connection, which the network ends.
    thread::spawn(move || {
        let mut messages = connection.as_pubsub();
        messages.subscribe(RECALL).expect("a subscription");
        loop {
            match messages.get_message() {
                Ok(_) => break,
                Err(error) if error.is_timeout() => {
                    if naive::ask::<bool>(&url, &["PEXPIRE", LOCK, &millis(ttl)]).is_err() {
                        return;
                    }
                }
                Err(_) => return,
            }
        }
        let _ = naive::ask::<bool>(&url, &["DEL", LOCK]);
    })
}
