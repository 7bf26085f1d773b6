use std::time::Duration;

use leasehold::error::AcquireError;
use leasehold_testkit::proxy::{Direction, Links};

use super::net::Net;
use crate::support::{matrix::row, patient, raw, wait};

row! {
    half_open: protected, control;
    fault: "connections lose all data in both directions and are not closed",
    right: "commands end at their own deadlines; new connections renew the leases in time",
    control: "a client without deadlines",
}

const TTL: Duration = Duration::from_secs(3);

fn protected() -> String {
    let net = Net::start();
    wait::on_one_thread(async {
        let builder = patient::builder().ttl(TTL).command_timeout(Duration::from_millis(300));
        let locks = builder.connect(&net.url()).await.expect("the server answers");
        let lock = |name| locks.lock(name).expect("a name");
        let held = lock("held").acquire().wait(wait::CEILING).await.expect("a lease");
        let lease = held.lease();

        let before = net.proxy.counts();
        let holes = net.proxy.black_hole_links(Links::All, Direction::Both);
        assert!(holes >= 2, "{holes} connections");
        let other = wait::soon("another lock", lock("b").acquire().wait(wait::CEILING)).await;
        other.expect("a lease").release().await.expect("held to the end");
        // Whatever is renewed from here on is renewed on a new connection.
        wait::until("time passes", || lease.remaining() < TTL.mul_f64(0.7)).await;
        wait::until("renewed", || lease.remaining() > TTL.mul_f64(0.75) || !lease.is_held()).await;
        assert!(lease.is_held(), "{:?}", lease.state());
        let after = net.proxy.counts();
        let dials = after.accepted - before.accepted;
        assert!(dials >= 2 && after.open > before.open, "{after:?}");

        net.proxy.black_hole(Direction::Both);
        let cut_off = wait::soon("a try ends", lock("c").try_acquire()).await;
        assert!(matches!(cut_off, Err(AcquireError::Unavailable(_))), "{cut_off:?}");
        net.proxy.heal();
        held.release().await.expect("held to the end");
        assert_eq!(locks.shutdown(wait::CEILING).await.held, 0);
        net.is_clean_soon();
        format!(
            "{holes} connections swallowed all; {dials} new ones were made; lease renewed in time"
        )
    })
}

fn control() -> String {
    let net = Net::start();
    wait::on_one_thread(async {
        let mut connection = raw::connect(&net.url()).await;
        net.proxy.black_hole(Direction::Both);
        let began_at = net.server.micros();
        let asking =
            tokio::spawn(
                async move { redis::cmd("PING").query_async::<String>(&mut connection).await },
            );
        let passed = || net.server.micros() > began_at + 1_000_000;
        wait::until("a second passes", passed).await;
        assert!(!asking.is_finished(), "it was answered or gave up");
        net.proxy.heal();
        let answer = wait::soon("the answer comes", asking).await.expect("a task");
        assert_eq!(answer.expect("an answer"), "PONG");
    });
    wait::block_until("all connections end", || net.proxy.counts().open == 0);
    "no answer and no error during the fault".into()
}
