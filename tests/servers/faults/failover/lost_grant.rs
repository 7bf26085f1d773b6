use std::thread;

use leasehold_testkit::{LockText, RedisServer};

use crate::{
    faults::server::{
        plain_counter,
        scene::{self, LEASE},
    },
    support::{
        crew::{Crew, Plan},
        matrix::row,
        pair::Pair,
        unheard, wait,
    },
};

row! {
    lost_grant: protected, control;
    fault: "a failover to a replica that has not heard of the lease and of its grant",
    right: "the holder learns of the loss; the late write is refused; fences grow",
    control: "a plain counter",
}

fn protected() -> String {
    let pair = Pair::start();
    let mut crew = Crew::start(&Plan::PROTECTED, &pair.url());
    crew.work(20);
    wait::block_until("the replica has the lock", || {
        LockText::find(&pair.replica, LEASE).is_some()
    });
    pair.promote();
    let read = unheard::halt(&mut crew, 0, &pair.master, LEASE);
    let fence = |server| LockText::of(server, LEASE).last();
    let above = fence(&pair.master) - fence(&pair.replica);
    assert!(above > 0, "nothing is lost");
    pair.master.kill();
    pair.announce();
    crew.until_above(read);
    // A release whose connection was cut is one, if "gone" is all that is known of it.
    thread::sleep(Plan::PROTECTED.ttl);
    crew.resume(0);
    crew.work(20);
    let finished = crew.finish();
    let seen = finished.right();
    let summary = finished.history.check().expect("it was right");
    assert!(summary.refused > 0 && summary.lost > 0, "{summary:?}");
    scene::leaves_nothing(&pair.replica);
    format!("the lost fence was {above} above the last one that the new master knew; {seen}")
}

fn control() -> String {
    let pair = Pair::start();
    let (master, replica) = (&pair.master, &pair.replica);
    let promote = |_: &_| {
        let has = || replica.query::<bool>(&["EXISTS", "naive:{a}:counter"]);
        wait::block_until("the replica has the counter", has);
        pair.promote();
    };
    plain_counter::damage_between(master, replica, promote, RedisServer::kill)
}
