//! Servers whose addresses others tell: a Cluster announces its nodes, and Sentinels name a master. If another server
//! is there, the line says who tells so, and what corrects it.

use std::{
    io::{Read as _, Write as _},
    net::TcpListener,
    thread,
};

use leasehold_testkit::{RedisCluster, RedisServer, SentinelGroup};

use crate::support::{Finished, LOCK, finished, leasehold, settled};

fn asked(url: &str, words: &[&str]) -> Finished {
    finished(leasehold(words).env("REDIS_URL", url))
}

fn run(url: &str) -> Finished {
    asked(url, &["run", "--wait", "2s", LOCK, "--", "true"])
}

fn names(text: &str, words: &[&str]) {
    for word in words {
        assert!(text.contains(word), "no {word:?} in: {text}");
    }
}

/// A server of the web, at a port; its thread ends with the tests.
fn of_http() -> u16 {
    let listener = TcpListener::bind("127.0.0.1:0").expect("a port");
    let port = listener.local_addr().expect("an address").port();
    thread::spawn(move || {
        for client in listener.incoming() {
            let Ok(mut client) = client else { return };
            let _ = client.read(&mut [0; 1024]);
            let _ = client.write_all(b"HTTP/1.1 400 Bad Request\r\nConnection: close\r\n\r\n");
        }
    });
    port
}

fn port_of(server: &RedisServer) -> u16 {
    server.port().expect("a port")
}

/// Lets a node announce another port, and returns when all nodes tell it. Redis 6.2 reads the setting when it starts.
fn announce(cluster: &RedisCluster, node: usize, port: u16) {
    let id: String = cluster.servers()[node].query(&["CLUSTER", "MYID"]);
    cluster.servers()[node].set_for_restart("cluster-announce-port", &port.to_string());
    cluster.kill(node);
    cluster.revive(node);
    let tells = |server: &RedisServer| {
        let nodes: String = server.query(&["CLUSTER", "NODES"]);
        let is_told = |line: &str| line.starts_with(&id) && line.contains(&format!(":{port}@"));
        let is_up = server.query::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok");
        is_up && nodes.lines().any(is_told) && !nodes.contains("fail")
    };
    settled(|| cluster.servers().iter().all(tells).then_some(()));
}

/// As with a setting that was copied from node to node.
#[test]
fn one_address_of_several_nodes_of_a_cluster_is_told() {
    let cluster = RedisCluster::start();
    let url = cluster.url();
    let shared = port_of(&cluster.servers()[0]);
    announce(&cluster, 1, shared);
    announce(&cluster, 2, shared);
    let address = format!("one address, 127.0.0.1:{shared}, for 3");
    let says = [&*address, "`cluster-announce-ip`", "`cluster-announce-port`"];
    for words in [&["health"][..], &["run", "--wait", "2s", LOCK, "--", "true"]] {
        names(asked(&url, words).complaint(78), &says);
    }
    let examined = asked(&url, &["doctor"]);
    assert_eq!(examined.code, 2, "{examined:?}");
    names(&examined.out, &says);
    // The control.
    announce(&cluster, 1, port_of(&cluster.servers()[1]));
    announce(&cluster, 2, port_of(&cluster.servers()[2]));
    run(&url).well();
}

/// Each of two nodes announces the port of the other: it redirects to its own address.
#[test]
fn nodes_whose_addresses_are_swapped_are_told() {
    let cluster = RedisCluster::start();
    let [one, other] = [0, 1].map(|number| port_of(&cluster.servers()[number]));
    announce(&cluster, 0, other);
    announce(&cluster, 1, one);
    let is_first =
        |name: &String| RedisCluster::owner_of(&format!("leasehold:{{{name}}}:lease")) == 0;
    let name = (0..100).map(|number| format!("jobs/{number}")).find(is_first).expect("some name");
    let ended = asked(&cluster.url(), &["run", "--wait", "6s", &name, "--", "true"]);
    names(
        ended.last_complaint(69),
        &["MOVED", "another node is at this address", "`cluster-announce-port`"],
    );
}

/// It is fine until the replica takes over.
#[test]
fn a_replica_with_the_address_of_its_master_is_told_by_the_doctor() {
    let cluster = RedisCluster::with_replicas();
    let master = port_of(&cluster.servers()[0]);
    announce(&cluster, 3, master);
    run(&cluster.url()).well();
    // The Cluster shows a replica once it has data.
    let told = || Some(asked(&cluster.url(), &["doctor"])).filter(|ended| ended.code == 2);
    let examined = settled(told);
    let address = format!("one address, 127.0.0.1:{master}, for 2");
    names(&examined.out, &[&address, "`cluster-announce-port`"]);
}

#[test]
fn another_server_at_an_announced_port_is_told_with_who_announces_it() {
    let cluster = RedisCluster::of_masters(1);
    let (url, own) = (cluster.url(), port_of(&cluster.servers()[0]));
    let closed = RedisServer::builder().tcp().password("hush-hush").start();
    let of_tls = RedisServer::builder().tls().start();
    let group = SentinelGroup::start();
    let plain = RedisServer::builder().tcp().start();
    for (port, code, says) in [
        (port_of(&closed), 78, "user and password"),
        (port_of(&of_tls), 69, "TLS"),
        (group.sentinels()[0].port(), 78, "is a Sentinel"),
        (port_of(&plain), 78, "is not a node of a Cluster"),
        (of_http(), 78, "does not speak Redis' protocol"),
    ] {
        announce(&cluster, 0, port);
        let who = format!("127.0.0.1:{port}/0, which the Cluster announces, as 127.0.0.1:{own}");
        let ended = run(&url);
        names(ended.complaint(code), &[says, &who, "`cluster-announce-port`"]);
        assert!(!ended.err.contains("any more"), "{ended:?}");
        assert!(!ended.err.contains("redis+sentinel"), "{ended:?}");
        let who = format!("which the Cluster announces, as 127.0.0.1:{own}");
        names(&asked(&url, &["doctor"]).out, &[says, &who, "`cluster-announce-port`"]);
    }
}

/// The port of a node with TLS announces one without.
#[test]
fn a_port_without_tls_that_a_cluster_with_tls_announces_is_told() {
    let cluster = RedisCluster::with_tls();
    let server = &cluster.servers()[0];
    let plain = RedisServer::builder().tcp().start();
    let folder = tempfile::tempdir().expect("a folder");
    let (certificate, key) = server.certificate();
    let file = |name: &str, pem: &str| {
        let path = folder.path().join(name);
        std::fs::write(&path, pem).expect("a file");
        path.display().to_string()
    };
    let ca = file("ca", server.ca_pem().expect("an authority"));
    let (certificate, key) = (file("certificate", &certificate), file("key", &key));
    let options = ["--tls-ca", &ca, "--tls-cert", &certificate, "--tls-key", &key];
    let asked = |url: &str, words: &[&str]| asked(url, &[&options[..], words].concat());
    let command = ["run", "--wait", "2s", LOCK, "--", "true"];
    let port = port_of(&plain).to_string();
    for (number, server) in cluster.servers().iter().enumerate() {
        server.set_for_restart("cluster-announce-port", &port);
        server.set_for_restart("cluster-announce-tls-port", &port);
        cluster.kill(number);
        cluster.revive(number);
    }
    let is_up = |server: &RedisServer| {
        server.query::<String>(&["CLUSTER", "INFO"]).contains("cluster_state:ok")
    };
    settled(|| cluster.servers().iter().all(is_up).then_some(()));
    let text = asked(&cluster.url(), &command).complaint(78).to_owned();
    names(&text, &["`cluster-announce-tls-port`"]);

    // A single server with TLS is no Cluster: the address keeps its TLS.
    let single = RedisServer::builder().tls_under(server).start();
    let url = single.url().replace("rediss://", "rediss+cluster://");
    let text = asked(&url, &command).complaint(78).to_owned();
    names(&text, &["not a node of a Cluster", "write rediss://"]);
    let first = cluster.url().replace("rediss+cluster://", "rediss://");
    let first = first.split(',').next().expect("a node");
    names(asked(first, &command).complaint(78), &["write rediss+cluster://"]);
}

#[test]
fn a_wrong_server_that_sentinels_name_as_the_master_is_told_as_that() {
    let group = SentinelGroup::start();
    let closed = RedisServer::builder().tcp().password("hush-hush").start();
    let of_tls = RedisServer::builder().tls().start();
    let node = RedisCluster::of_masters(1);
    for (name, port, code, says) in [
        ("http", of_http(), 78, "does not speak Redis' protocol"),
        ("sentinel", group.sentinels()[0].port(), 78, "is a Sentinel"),
        ("closed", port_of(&closed), 78, "user and password"),
        ("tls", port_of(&of_tls), 69, "TLS"),
        ("node", port_of(&node.servers()[0]), 78, "is a node of a Redis Cluster"),
    ] {
        for sentinel in group.sentinels() {
            let (port, quorum) = (port.to_string(), "2");
            sentinel.command(&["SENTINEL", "MONITOR", name, "127.0.0.1", &port, quorum]);
        }
        let url = group.url().replace(SentinelGroup::MASTER, name);
        let who = format!("127.0.0.1:{port}, which the Sentinels name as the master of");
        let ended = run(&url);
        let text = ended.complaint(code);
        names(text, &[says, &who, "SENTINEL REMOVE", "SENTINEL MONITOR"]);
        assert!(!text.contains("write redis+sentinel"), "{text}");
        let examined = asked(&url, &["doctor"]);
        let says = [says, "which the Sentinels name as the master", "SENTINEL MONITOR"];
        names(&examined.out, &says);
    }
}

#[test]
fn a_user_that_one_node_of_a_cluster_lacks_is_told_with_the_node() {
    let cluster = RedisCluster::start();
    for server in cluster.servers() {
        server.command(&["ACL", "SETUSER", "app", "on", ">hush-hush", "~*", "&*", "+@all"]);
    }
    let url = cluster.url_with("app:hush-hush@");
    run(&url).well();
    let odd = &cluster.servers()[2];
    let place = format!("127.0.0.1:{}", port_of(odd));
    for change in [&["ACL", "DELUSER", "app"][..], &["ACL", "SETUSER", "app", "on", ">another"]] {
        odd.command(change);
        let ended = asked(&url, &["health"]);
        names(ended.complaint(78), &[&place, "WRONGPASS", "create the user there"]);
        let file = tempfile::NamedTempFile::new().expect("a file");
        std::fs::write(file.path(), "hush-hush").expect("a file");
        let path = file.path().display().to_string();
        let words = ["--user", "app", "--password-file", &path, "health"];
        let text = asked(&cluster.url(), &words).complaint(78).to_owned();
        names(&text, &[&place, "WRONGPASS", "create the user there"]);
        names(&asked(&url, &["doctor"]).out, &[&place, "create the user there"]);
    }
}

#[test]
fn a_sentinel_that_refuses_the_login_is_told_beside_those_that_are_away() {
    let group = SentinelGroup::start();
    let ports: Vec<_> = group.sentinels().iter().map(|one| one.port().to_string()).collect();
    group.sentinels()[0].command(&["ACL", "SETUSER", "default", "resetpass", ">hush-hush"]);
    // Two ports where nobody listens.
    let url = group.url().replace(&ports[1], "1").replace(&ports[2], "2");
    let text = run(&url).complaint(69).to_owned();
    let closed = format!("127.0.0.1:{}", ports[0]);
    names(&text, &["refuse the login", &closed, "sentinel_pass"]);
    names(&text, &["cannot connect", "127.0.0.1:1", "127.0.0.1:2", "check that the server runs"]);
}
