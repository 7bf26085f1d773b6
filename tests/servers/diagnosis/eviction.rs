//! A server that deletes leases when its memory is full.

use leasehold::diagnosis::{Severity, Topic};

use super::{about, diagnose, place, sound, tells, the_one};

#[tokio::test]
async fn a_policy_that_evicts_is_told_with_its_cure() {
    let server = sound().arg("maxmemory", "100mb").start();
    for (policy, victims) in
        [("allkeys-lru", "watermarks of gates"), ("volatile-ttl", "have a time to live")]
    {
        server.command(&["CONFIG", "SET", "maxmemory-policy", policy]);
        let diagnosis = diagnose(&server.url()).await;
        let finding = the_one(&diagnosis, Topic::Eviction);
        let cure = "set maxmemory-policy to noeviction";
        tells(finding, Severity::Danger, "P1 P2 P7", &[policy, victims, cure]);
        assert_eq!(finding.servers, [place(server.port())]);
        assert_eq!(diagnosis.worst(), Some(Severity::Danger));
        assert!(diagnosis.to_string().contains("danger: eviction (P1, P2, P7) at 127.0.0.1:"));
    }
    // Nothing is evicted without a limit, until somebody sets one.
    server.command(&["CONFIG", "SET", "maxmemory", "0"]);
    let diagnosis = diagnose(&server.url()).await;
    let finding = the_one(&diagnosis, Topic::Eviction);
    tells(finding, Severity::Warning, "P1 P2 P7", &["maxmemory has no limit now"]);

    // The cure cures.
    server.command(&["CONFIG", "SET", "maxmemory-policy", "noeviction"]);
    assert!(about(&diagnose(&server.url()).await, Topic::Eviction).is_empty());
}
