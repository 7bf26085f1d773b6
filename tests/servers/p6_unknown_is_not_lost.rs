//! P6 on real servers: what fails for a while is not lost; the lease goes on being renewed.

use std::time::Duration;

use leasehold::{Guard, LockRuntime, Released};
use leasehold_testkit::{LockText, Patience, RedisServer};

use crate::support::{lease, patient, wait};

/// Renewed after a third; half of it is left when a fault ends.
const TTL: Duration = Duration::from_secs(8);

const LEASE: &str = "leasehold:{a}:lease";

struct Scene {
    server: RedisServer,
    locks: LockRuntime,
    guard: Guard,
}

async fn scene() -> Scene {
    let server = RedisServer::start();
    let locks =
        patient::builder().ttl(TTL).connect(&server.url()).await.expect("the server answers");
    let guard = locks.lock("a").expect("a name").acquire().await.expect("a lease");
    Scene { server, locks, guard }
}

impl Scene {
    /// No renewal has come through for longer than a third of the ttl.
    async fn renewals_fail(&self) {
        let left = || self.guard.remaining();
        wait::until("no renewal comes through", || left() < TTL.mul_f64(0.58)).await;
        assert!(self.guard.is_held());
    }

    /// A renewal comes through, and everything else works as before.
    async fn goes_on(self) {
        let left = || self.guard.remaining();
        wait::until("a renewal comes through", || left() > TTL.mul_f64(0.9)).await;
        let fence = LockText::of(&self.server, LEASE).lease().fence;
        assert_eq!(fence, self.guard.fence().get());

        let inner = self.guard.reenter().await.expect("the lease is held");
        assert_eq!(lease::holds(&self.server, LEASE, self.guard.id()), Some(2));
        assert!(matches!(inner.release().await, Ok(Released::StillHeld(_))));
        let other = self.locks.lock("b").expect("a name");
        drop(wait::soon("another lock", other.acquire()).await.expect("a lease"));
        assert_eq!(self.guard.release().await.expect("held to the end"), Released::Ended);
        assert!(!lease::is_held(&self.server, LEASE));
    }
}

#[tokio::test]
async fn a_server_that_ran_an_endless_script() {
    let scene = scene().await;
    scene.server.command(&["CONFIG", "SET", "lua-time-limit", "50"]);
    let socket = scene.server.url();
    let endless = std::thread::spawn(move || {
        let client = redis::Client::open(socket).expect("an address");
        let mut connection = client.get_connection().expect("the server answers");
        redis::cmd("EVAL").arg("while true do end").arg(0).exec(&mut connection)
    });
    scene.renewals_fail().await;
    let kill = || scene.server.try_query::<String>(&["SCRIPT", "KILL"]).ok();
    assert!(Patience::of(wait::CEILING).until(kill).is_some(), "the script was not killed");
    assert!(endless.join().expect("a thread").is_err());
    scene.goes_on().await;
}

#[tokio::test]
async fn a_server_that_refused_writes() {
    let few_replicas: [&[&str]; 2] = [
        &["CONFIG", "SET", "min-replicas-to-write", "1"],
        &["CONFIG", "SET", "min-replicas-to-write", "0"],
    ];
    // Of nobody: the lease stays.
    let demoted: [&[&str]; 2] = [&["REPLICAOF", "127.0.0.1", "1"], &["REPLICAOF", "NO", "ONE"]];
    for [refuse, mend] in [few_replicas, demoted] {
        let scene = scene().await;
        scene.server.command(refuse);
        scene.renewals_fail().await;
        scene.server.command(mend);
        scene.goes_on().await;
    }
}
