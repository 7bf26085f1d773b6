use leasehold_testkit::proxy::{Direction, Links};

use super::{
    naive,
    net::{ALONE, Net, strictly_right},
};
use crate::support::{matrix::row, wait};

row! {
    subscriber_lagging: protected, control;
    fault: "subscribers are stopped until the server disconnects them for full buffers",
    right: "heartbeats go on; late messages are used or ignored",
    control: "a waiter that does not subscribe again",
}

fn protected() -> String {
    let net = net();
    let crew = net.crew(&ALONE);
    crew.work(3);
    wait::block_until("all have subscribed", || net.subscribers() == ALONE.processes);
    let lagging = net.proxy.black_hole_links(Links::Subscribed, Direction::ToClient);
    assert!(lagging >= ALONE.processes, "{lagging}");
    flood_until_killed(&net, "leasehold:*");
    crew.work(6);
    net.proxy.heal();
    wait::block_until("all have subscribed again", || net.subscribers() == ALONE.processes);
    let before = net.proxy.counts().pushes;
    wait::block_until("messages come again", || {
        crew.work(3);
        net.proxy.counts().pushes >= before + 3
    });
    let finished = crew.finish();
    net.is_clean_soon();
    format!("{lagging} subscribers killed for lag; {}", strictly_right(&finished))
}

fn control() -> String {
    let net = net();
    naive::waits_in_vain(&net, |waiter| {
        // The waiter before this one has ended.
        net.proxy.black_hole_links(Links::Subscribed, Direction::ToClient);
        flood_until_killed(&net, "freed");
        net.proxy.heal();
        waiter.until_deaf();
    })
}

/// A server whose patience with subscribers is short.
fn net() -> Net {
    let net = Net::start();
    let limit = "pubsub 1kb 0 0";
    net.server.command(&["CONFIG", "SET", "client-output-buffer-limit", limit]);
    net
}

/// Publishes what nobody understands on all channels, until nobody hears it.
fn flood_until_killed(net: &Net, channels: &str) {
    let junk = "x".repeat(64 << 10);
    let channels: Vec<String> = net.server.query(&["PUBSUB", "CHANNELS", channels]);
    assert!(!channels.is_empty());
    for channel in &channels {
        let killed = || net.server.query::<u64>(&["PUBLISH", channel, &junk]) == 0;
        wait::block_until("the subscriber is killed", killed);
    }
    let kills = net.server.log().matches("overcoming of output buffer limits").count();
    assert!(kills >= channels.len(), "{kills} kills");
}
