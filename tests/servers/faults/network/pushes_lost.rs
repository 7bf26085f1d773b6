use leasehold_testkit::proxy::{Action, Rule};

use super::{
    naive,
    net::{ALONE, Net, strictly_right},
};
use crate::support::matrix::row;

row! {
    pushes_lost: protected, control;
    fault: "no message of the server arrives",
    right: "waiters find their grants by heartbeat",
    control: "a waiter that only waits for its message",
}

fn protected() -> String {
    let net = Net::start();
    let rule = net.proxy.inject(Rule::new(Action::Drop).pushes().always());
    let crew = net.crew(&ALONE);
    crew.work(15);
    let finished = crew.finish();
    let lost = net.proxy.struck(rule);
    assert!(lost >= 5 && net.proxy.counts().pushes == lost, "{lost} messages lost");
    net.is_clean_soon();
    format!("{lost} messages lost; {}", strictly_right(&finished))
}

fn control() -> String {
    let net = Net::start();
    let seen = naive::waits_in_vain(&net, |_| {
        net.proxy.inject(Rule::new(Action::Drop).pushes().always());
    });
    assert_eq!(net.proxy.counts().struck, 1);
    seen
}
