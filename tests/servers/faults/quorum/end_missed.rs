use leasehold_testkit::{
    QuorumGroup,
    proxy::{Action, Rule},
};

use super::{
    naive_quorum::NaiveQuorum,
    scene::{self, LONG, NAME, holding},
};
use crate::{
    faults::server::scene::{connect, naive, run, take},
    support::{matrix::row, wait},
};

row! {
    end_missed: protected, control;
    fault: "one of the two servers of a lease does not hear of its end; when it is back, another one fails",
    right: "it is told until it has heard, and the lock can be had long before the ttl is over",
    control: "a client that tells each server once",
}

fn protected() -> String {
    run(async {
        let group = scene::group(3);
        let network = group.network();
        let locks = connect(&network.url(), LONG).await;
        let other = connect(&group.url(), LONG).await;
        let guard = take(&locks, NAME).await;
        let missed = holding(&group, guard.id())[0];
        let lost = Rule::new(Action::Drop).containing(format!("{{{NAME}}}:lease"));
        network.proxy(missed).inject(lost);
        guard.release().await.expect("a majority is free of it");
        assert_eq!(network.proxy(missed).counts().struck, 1, "it has heard");
        wait::block_until("the server has heard", || !scene::is_held(group.server(missed)));
        group.kill((missed + 1) % 3);
        take(&other, NAME).await.release().await.expect("held to the end");
        "the lock was had with the server that had missed it, long before the ttl".into()
    })
}

fn control() -> String {
    run(async {
        let group = QuorumGroup::start(3);
        let mut locks = Vec::new();
        for server in group.servers() {
            locks.push(naive(server, LONG).await);
        }
        let mut held = Vec::new();
        for lock in &mut locks {
            held.push(lock.try_acquire().await.expect("an answer").expect("it is free"));
        }
        // The first server does not hear of it.
        for (lock, held) in locks.iter_mut().zip(&held).skip(1) {
            assert!(lock.release(held).await.expect("an answer"));
        }
        group.kill(1);
        let next = NaiveQuorum::of(group.servers().step_by(2), LONG).await;
        let granted = next.ask_all().await.len();
        assert!(granted < group.majority(), "the control came to no harm");
        "nobody can have it for the whole ttl".into()
    })
}
