//! Processes at work while some servers are down.

use leasehold_testkit::{QuorumGroup, RedisServer};

use super::scene::{self, strictly_right};
use crate::{
    faults::server,
    support::crew::{Crew, Plan},
};

/// How often the control tries.
const TRIES: usize = 20;

/// First the first servers hang, then they are well, then the last ones are dead.
pub(super) fn goes_on(nodes: usize, down: usize) -> String {
    let group = scene::group(nodes);
    let crew = Crew::start(&Plan::PROTECTED, &group.url());
    crew.work(20);
    (0..down).for_each(|number| group.pause(number));
    crew.work(50);
    (0..down).for_each(|number| group.resume(number));
    crew.work(20);
    (nodes - down..nodes).for_each(|number| group.kill(number));
    crew.work(50);
    let seen = strictly_right(&crew.finish());
    format!("went on while {down} of {nodes} hung, and while {down} others were dead: {seen}")
}

/// A client that has but the first one of the servers.
pub(super) fn stops(nodes: usize, down: usize) -> String {
    server::scene::run(async {
        let group = QuorumGroup::start(nodes);
        let mut lock = server::scene::naive(group.server(0), Plan::NAIVE.ttl).await;
        (0..down).for_each(|number| group.kill(number));
        let mut failed = 0;
        for _ in 0..TRIES {
            failed += usize::from(lock.try_acquire().await.is_err());
        }
        assert_eq!(failed, TRIES, "the control came to no harm");
        let mut up = group.servers().skip(down);
        assert!(up.all(RedisServer::is_master));
        format!("{failed} of {TRIES} tries failed, with {} servers up", nodes - down)
    })
}
