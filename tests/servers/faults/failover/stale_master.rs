use super::{
    overlap,
    stale::{NAMES, Stale},
    unacknowledged::try_in_vain,
};
use crate::{
    faults::server::scene,
    support::{matrix::row, wait},
};

row! {
    stale_master: protected, control;
    fault: "a master stands still past its failover, wakes up, and takes writes until it is demoted",
    right: "with min-replicas-to-write it refuses them; with WAIT no grant is acknowledged, all are taken back",
    control: "the same without both",
}

fn protected() -> String {
    scene::run(async {
        let settings = [("min-replicas-to-write", "1"), ("min-replicas-max-lag", "1")];
        let stale = Stale::start(&settings).await;
        for name in NAMES {
            let tried = stale.left_behind.lock(name).expect("a name").try_acquire().await;
            let refused = tried.expect_err("it has no replica").to_string();
            assert!(refused.contains("NOREPLICAS"), "{refused}");
        }
        assert_eq!(stale.leases(), 0);
        stale.let_it_write();
        for name in NAMES {
            try_in_vain(&stale.left_behind, name).await;
        }
        wait::until("they are taken back", || stale.leases() == 0).await;
        stale.demote();
        assert!(stale.held.is_held(), "{:?}", stale.held);
        stale.held.release().await.expect("held to the end");
        let tries = NAMES.len();
        format!(
            "{tries} tries at the stale master refused, {tries} with WAIT not acknowledged; \
             the holder at the new master kept its lease"
        )
    })
}

fn control() -> String {
    scene::run(async {
        let stale = Stale::start(&[]).await;
        let mut guards = Vec::new();
        for name in NAMES {
            guards.push(scene::take(&stale.left_behind, name).await);
        }
        let by = overlap::of(&stale.held, &guards[0]);
        stale.demote();
        for guard in &guards {
            wait::soon("the loss", guard.lost()).await;
        }
        assert!(stale.held.is_held(), "{:?}", stale.held);
        format!(
            "two holders believed for {} ms at least; {} leases of the stale master lost",
            by.as_millis(),
            guards.len()
        )
    })
}
