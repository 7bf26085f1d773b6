//! `leasehold health`.

use leasehold_testkit::RedisServer;

use crate::support::{Finished, finished, leasehold};

fn health(url: &str) -> Finished {
    finished(leasehold(["health"]).env("REDIS_URL", url))
}

#[test]
fn the_exit_code_says_whether_locks_can_be_used() {
    let server = RedisServer::builder().tcp().start();
    let well = health(&server.url());
    assert_eq!((well.code, well.out.as_str()), (0, "the server answers\n"), "{well:?}");

    server.stop_signal();
    let silent = health(&server.url());
    server.cont_signal();
    assert_eq!((silent.code, silent.out.as_str()), (69, ""), "{silent:?}");
    assert_eq!(health(&server.url()).code, 0, "it is back");

    server.kill();
    let gone = health(&server.url());
    assert_eq!((gone.code, gone.out.as_str()), (69, ""), "{gone:?}");
    server.restart();
    assert_eq!(health(&server.url()).code, 0, "it is back");

    server.command(&["ACL", "SETUSER", "default", "-getex"]);
    let denied = health(&server.url());
    assert!(denied.code == 78 && denied.err.to_lowercase().contains("getex"), "{denied:?}");
}
