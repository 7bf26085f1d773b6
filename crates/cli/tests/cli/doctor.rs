//! `leasehold doctor`.

use leasehold_testkit::RedisServer;

use crate::support::{finished, leasehold};

#[test]
fn the_exit_code_is_the_worst_finding() {
    for (settings, code, worst) in [
        (&[("appendonly", "yes"), ("maxmemory-policy", "noeviction")][..], 0, None),
        (&[("maxmemory-policy", "noeviction")], 1, Some("warning")),
        (&[("maxmemory", "100mb"), ("maxmemory-policy", "allkeys-lru")], 2, Some("danger")),
    ] {
        let mut server = RedisServer::builder();
        for (key, value) in settings {
            server = server.arg(*key, *value);
        }
        let server = server.start();
        let text = finished(leasehold(["doctor"]).env("REDIS_URL", server.url()));
        assert_eq!(text.code, code, "{text:?}");
        assert!(text.out.contains("examined:"), "{text:?}");
        let json = finished(leasehold(["doctor", "--json"]).env("REDIS_URL", server.url()));
        assert_eq!(json.code, code, "{json:?}");
        let json: serde_json::Value = serde_json::from_str(&json.out).unwrap();
        assert_eq!(json["worst"].as_str(), worst, "{json}");
        assert_eq!(json["servers"].as_array().unwrap().len(), 1, "{json}");
    }
}

#[test]
fn a_server_out_of_reach_is_a_danger() {
    let ended = finished(leasehold(["doctor"]).env("REDIS_URL", "redis://127.0.0.1:1"));
    assert_eq!(ended.code, 2, "{ended:?}");
    assert!(ended.out.contains("danger: reach") && ended.out.contains("cure:"), "{ended:?}");
}
