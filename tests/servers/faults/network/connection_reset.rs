use leasehold_testkit::{
    CommandKind,
    proxy::{Action, Rule},
};

use super::{
    beside::Beside,
    naive,
    net::{ALONE, Net, strictly_right},
};
use crate::support::matrix::row;

row! {
    connection_reset: protected, control;
    fault: "connections are reset (RST) before, during and after commands of every kind",
    right: "a command that may have run is sent again on a new connection, and counts once",
    control: "a retried HINCRBY",
}

fn protected() -> String {
    let net = Net::start();
    let beside = Beside::start(&net);
    let crew = net.crew(&ALONE);
    let mut resets = 0;
    for kind in [CommandKind::Acquire, CommandKind::Release] {
        for rule in [Rule::new(Action::Reset).on(kind), Rule::new(Action::Cut).on(kind)] {
            resets += net.strike([rule.clone(), rule.replies()], 2);
        }
    }
    let renewal = Rule::new(Action::Reset).on(CommandKind::Renew);
    resets += net.strike([renewal.clone(), renewal.replies()], 1);
    beside.until_renewed();
    for _ in 0..3 {
        assert!(net.proxy.reset_all() > 0);
        crew.work(10);
    }
    let finished = crew.finish();
    beside.finish();
    net.is_clean_soon();
    format!("{resets} commands cut; {}", strictly_right(&finished))
}

fn control() -> String {
    naive::counts_twice(Action::Reset);
    "held twice, so still taken after its release".into()
}
