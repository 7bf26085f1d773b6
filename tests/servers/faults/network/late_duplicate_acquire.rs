use std::time::Duration;

use leasehold_testkit::{
    CommandKind,
    proxy::{Action, Rule},
};

use super::{
    naive,
    net::{Net, strictly_right},
};
use crate::support::{matrix::row, patient, wait};

row! {
    late_duplicate_acquire: protected, control;
    fault: "copies of acquires arrive again after the release",
    right: "no other lease changes; at worst the copy becomes a lease that nobody renews",
    control: "a SETNX followed by an EXPIRE",
}

fn protected() -> String {
    let net = Net::start();
    let (finished, copies) = net.with_late_copies(CommandKind::Acquire);
    assert!(copies >= 20, "{copies} copies");
    net.is_clean_soon();
    no_ghost_stays(&net);
    format!("{copies} copies came late; {}", strictly_right(&finished))
}

/// A copy that finds a free lock takes it, for one ttl at most: nobody renews it.
fn no_ghost_stays(net: &Net) {
    let rule = net.proxy.inject(Rule::new(Action::CopyLater).on(CommandKind::Acquire).always());
    wait::on_one_thread(async {
        let builder = patient::builder().ttl(Duration::from_secs(1));
        let locks = builder.connect(&net.url()).await.expect("the server answers");
        let lock = locks.lock("ghost").expect("a name");
        let mut fence = None;
        for _ in 0..2 {
            let guard = lock.acquire().wait(wait::CEILING).await.expect("a lease");
            assert!(fence < Some(guard.fence()));
            fence = Some(guard.fence());
            guard.release().await.expect("held to the end");
            assert!(!net.proxy.replay().is_empty());
        }
        assert_eq!(locks.shutdown(wait::CEILING).await.held, 0);
    });
    net.proxy.remove(rule);
    net.proxy.replay();
    net.is_clean_soon();
}

fn control() -> String {
    let net = Net::start();
    let url = net.url();
    net.proxy.inject(Rule::new(Action::CopyLater).containing("SETNX"));
    assert_eq!(naive::ask::<u64>(&url, &["SETNX", "lock", "one"]), Ok(1));
    assert_eq!(naive::ask::<u64>(&url, &["PEXPIRE", "lock", "1000"]), Ok(1));
    assert_eq!(naive::ask::<u64>(&url, &["DEL", "lock"]), Ok(1));
    assert_eq!(net.proxy.replay(), [":1\r\n"]);
    assert!(!naive::set_nx(&url, "lock", "two", "1000"));
    assert_eq!(net.server.keys_without_ttl(), ["0/lock"]);
    "a ghost holds the lock for ever".into()
}
