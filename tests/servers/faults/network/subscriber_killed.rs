use leasehold_testkit::proxy::Links;

use super::{
    naive,
    net::{ALONE, Net, strictly_right},
};
use crate::support::{matrix::row, wait};

row! {
    subscriber_killed: protected, control;
    fault: "subscriptions are killed by the server and reset by the network, again and again",
    right: "they are made anew; heartbeats find grants whose message was lost",
    control: "a waiter that does not subscribe again",
}

fn protected() -> String {
    let net = Net::start();
    let crew = net.crew(&ALONE);
    let (mut kills, mut resets) = (0, 0);
    while kills < 9 || resets < 9 {
        kills += net.server.query::<usize>(&["CLIENT", "KILL", "TYPE", "pubsub"]);
        crew.work(3);
        resets += net.proxy.reset_links(Links::Subscribed);
        crew.work(3);
    }
    wait::block_until("all have subscribed again", || net.subscribers() == ALONE.processes);
    let finished = crew.finish();
    net.is_clean_soon();
    format!("{} subscriptions killed; {}", kills + resets, strictly_right(&finished))
}

fn control() -> String {
    let net = Net::start();
    naive::waits_in_vain(&net, |waiter| {
        assert_eq!(net.server.query::<u64>(&["CLIENT", "KILL", "TYPE", "pubsub"]), 1);
        waiter.until_deaf();
    })
}
