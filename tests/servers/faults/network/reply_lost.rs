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
    reply_lost: protected, control;
    fault: "acquires, releases and renewals run, and their replies are lost",
    right: "the same command is sent again and gets the same answer; everything counts once",
    control: "a retried HINCRBY",
}

fn protected() -> String {
    let net = Net::start();
    let beside = Beside::start(&net);
    let crew = net.crew(&ALONE);
    let lost = |kind| Rule::new(Action::Drop).replies().on(kind);
    let mut replies = 0;
    for _ in 0..2 {
        replies += net.strike([lost(CommandKind::Acquire), lost(CommandKind::Release)], 1);
        crew.work(5);
    }
    replies += net.strike([lost(CommandKind::Renew)], 1);
    beside.until_renewed();
    crew.work(10);
    let finished = crew.finish();
    beside.finish();
    net.is_clean_soon();
    format!("{replies} replies lost; {}", strictly_right(&finished))
}

fn control() -> String {
    naive::counts_twice(Action::Drop);
    "one acquire counted twice, still taken after its release".into()
}
