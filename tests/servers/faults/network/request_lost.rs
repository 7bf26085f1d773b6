use std::time::Duration;

use leasehold_testkit::{
    CommandKind,
    proxy::{Action, Rule},
};

use super::{
    beside::Beside,
    naive,
    net::{ALONE, Net, millis, strictly_right},
};
use crate::support::{matrix::row, wait};

row! {
    request_lost: protected, control;
    fault: "acquires, releases and renewals never arrive",
    right: "they are sent again until their deadline, and count once",
    control: "a release that is sent once and not confirmed",
}

fn protected() -> String {
    let net = Net::start();
    let beside = Beside::start(&net);
    let crew = net.crew(&ALONE);
    let lost = |kind| Rule::new(Action::Drop).on(kind);
    let mut requests = 0;
    for _ in 0..2 {
        requests += net.strike([lost(CommandKind::Acquire), lost(CommandKind::Release)], 1);
        crew.work(5);
    }
    requests += net.strike([lost(CommandKind::Renew)], 1);
    beside.until_renewed();
    crew.work(10);
    let finished = crew.finish();
    beside.finish();
    net.is_clean_soon();
    format!("{requests} requests lost; {}", strictly_right(&finished))
}

fn control() -> String {
    const TTL: Duration = Duration::from_millis(1_200);
    let net = Net::start();
    let (url, ttl) = (net.url(), millis(TTL));
    let taken_at = net.server.micros();
    assert!(naive::set_nx(&url, "lock", "one", &ttl));
    let rule = net.proxy.inject(Rule::new(Action::Drop).containing("DEL"));
    let sent = naive::ask::<u64>(&url, &["DEL", "lock"]);
    assert!(sent.is_err() && net.proxy.struck(rule) == 1, "{sent:?}");
    wait::block_until("the next gets the lock", || naive::set_nx(&url, "lock", "two", &ttl));
    let waited = Duration::from_micros(net.server.micros() - taken_at);
    // The server keeps times to live in whole milliseconds.
    assert!(waited + Duration::from_millis(2) >= TTL, "{waited:?}");
    format!("released, and taken for its whole ttl of {TTL:?}")
}
