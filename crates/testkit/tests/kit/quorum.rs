use std::time::Duration;

use leasehold_testkit::{QuorumGroup, RedisServer};
use redis::{Client, RedisResult};

/// Whether a client at this address is answered.
fn answers(url: &str) -> bool {
    const LIMIT: Duration = Duration::from_millis(300);
    let ask = || -> RedisResult<String> {
        let mut connection = Client::open(url)?.get_connection_with_timeout(LIMIT)?;
        connection.set_read_timeout(Some(LIMIT))?;
        redis::cmd("PING").query(&mut connection)
    };
    ask().is_ok()
}

fn value(server: &RedisServer) -> Option<String> {
    server.query(&["GET", "a"])
}

#[test]
fn servers_of_a_quorum_are_killed_paused_and_started_again_with_and_without_data() {
    let group = QuorumGroup::start(3);
    assert_eq!((group.nodes(), group.majority()), (3, 2));
    let set = |to: &str| group.servers().for_each(|server| drop(server.command(&["SET", "a", to])));
    set("old");
    (0..3).for_each(|number| group.save(number));
    set("new");
    group.kill(0);
    assert!(!answers(&group.server(0).url()));
    group.revive(0);
    group.revive_empty(1);
    let values: Vec<_> = group.servers().map(value).collect();
    assert_eq!(values, [Some("old".into()), None, Some("new".into())]);
    group.revive(1);
    assert_eq!(value(group.server(1)), None, "what was lost stays lost");
    group.pause(2);
    assert!(!answers(&group.server(2).url()));
    group.resume(2);
    assert_eq!(value(group.server(2)).as_deref(), Some("new"));
}

#[test]
fn a_network_cuts_one_client_off_and_no_other() {
    let group = QuorumGroup::start(3);
    let [mine, other] = [group.network(), group.network()];
    mine.cut(&[0, 2]);
    let reached = |network: &leasehold_testkit::QuorumNetwork| -> Vec<bool> {
        network.proxies().map(|proxy| answers(&proxy.url())).collect()
    };
    assert_eq!(reached(&mine), [false, true, false]);
    assert_eq!(reached(&other), [true; 3]);
    mine.heal();
    assert_eq!(reached(&mine), [true; 3]);
}

#[test]
fn one_clock_of_a_quorum_moves_alone() {
    let group = QuorumGroup::builder(3).clocks().start();
    let minute = Duration::from_secs(60);
    let time = |number: usize| group.server(number).query::<[u64; 2]>(&["TIME"])[0];
    let began = time(0);
    group.clock(1).forward(minute);
    group.clock(2).back(minute);
    let now = time(0);
    assert!(now < began + 30 && time(1) >= now + 60 && time(2) <= now - 30);
}

#[test]
fn the_address_of_a_quorum_names_all_servers() {
    let group = QuorumGroup::start(3);
    let ports: Vec<_> = group.servers().filter_map(RedisServer::port).collect();
    let [a, b, c] = ports[..] else { panic!("every server has a port") };
    let hosts = format!("127.0.0.1:{a},127.0.0.1:{b},127.0.0.1:{c}");
    assert_eq!(group.url(), format!("redis+quorum://{hosts}"));
    assert_eq!(group.url_with("u:p@"), format!("redis+quorum://u:p@{hosts}"));
}

#[test]
fn a_quorum_with_tls_is_one_of_servers_under_one_authority() {
    let group = QuorumGroup::builder(3).tls().start();
    assert!(group.url().starts_with("rediss+quorum://"));
    let authorities: Vec<_> = group.servers().map(RedisServer::ca_pem).collect();
    assert!(authorities[0].is_some() && authorities.iter().all(|one| *one == authorities[0]));
    assert!(group.network().url().starts_with("rediss+quorum://"));
}
