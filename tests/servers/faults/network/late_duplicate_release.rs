use leasehold_testkit::{
    CommandKind,
    proxy::{Action, Rule},
};

use super::{
    naive,
    net::{Net, strictly_right},
};
use crate::support::matrix::row;

row! {
    late_duplicate_release: protected, control;
    fault: "copies of releases arrive while others hold the lock",
    right: "a release names one acquisition and one fence: no other lease ends",
    control: "a DEL",
}

fn protected() -> String {
    let net = Net::start();
    let (finished, copies) = net.with_late_copies(CommandKind::Release);
    assert!(copies >= 40, "{copies} copies");
    let seen = strictly_right(&finished);
    net.is_clean_soon();
    format!("{copies} copies came late; {seen}")
}

fn control() -> String {
    let net = Net::start();
    let url = net.url();
    net.proxy.inject(Rule::new(Action::CopyLater).containing("DEL"));
    assert!(naive::set_nx(&url, "lock", "one", "60000"));
    assert_eq!(naive::ask::<u64>(&url, &["DEL", "lock"]), Ok(1));
    assert!(naive::set_nx(&url, "lock", "two", "60000"));
    assert_eq!(net.proxy.replay(), [":1\r\n"]);
    assert!(naive::set_nx(&url, "lock", "three", "60000"), "two still holds it");
    "two holders at once".into()
}
