use leasehold::error::{ConnectError, StoreErrorKind::Config};
use leasehold_testkit::RedisServer;

use super::scene::assert_says;
use crate::support::{matrix::row, patient, wait};

row! {
    cluster_node: protected;
    fault: "the address leads to a node of a Redis Cluster, which redirects most names",
    right: "connect is refused, before a lock of another node is asked for",
}

fn protected() -> String {
    wait::on_one_thread(async {
        let server = RedisServer::builder().arg("cluster-enabled", "yes").start();
        let error = patient::builder().connect(&server.url()).await.expect_err("a node");
        let ConnectError::Store(error) = error else { panic!("{error}") };
        let socket = server.socket().display().to_string();
        assert_says(&error, Config, &["Redis Cluster", "redis+cluster://host", &socket]);
        assert_eq!(server.query::<u64>(&["DBSIZE"]), 0);
        "refused at connect, with the server's address; 0 keys".into()
    })
}
