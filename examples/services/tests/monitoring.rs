//! The dashboard and the alert rules, checked by a real Prometheus that scrapes the example, and in
//! virtual time by its tool.
#![expect(clippy::disallowed_methods, reason = "a scrape takes real time")]

#[path = "monitoring/documents.rs"]
mod documents;
#[path = "monitoring/http.rs"]
mod http;
#[path = "monitoring/process.rs"]
mod process;
#[path = "monitoring/prometheus.rs"]
mod prometheus;

use std::{
    process::Command,
    sync::mpsc::{self, RecvTimeoutError},
    thread,
    time::{Duration, Instant},
};

use documents::{alerts, document, queries, quick_rules, read};
use leasehold_testkit::RedisServer;
use process::{Running, free_address};
use prometheus::Prometheus;

/// How long the example runs, in seconds: it is ended when all was seen.
const LENGTH: &str = "120";

/// Rules that look at 5 minutes as they are, for what shows at once.
fn rules() -> String {
    read("alerts.yml")
}

#[test]
fn every_query_of_the_dashboard_has_a_finite_value() {
    let (address, redis) = (free_address(), RedisServer::start());
    let environment = [("REDIS_URL", redis.url())];
    let _example = Running::example("metrics_server", &[&address, LENGTH], environment);
    let prometheus = Prometheus::scraping(&[&address], &rules());
    let queries = queries();
    assert!(queries.len() > 20, "{queries:?}");
    thread::scope(|scope| {
        // The threads end with their senders, also when the test fails.
        let (healthy, ended) = mpsc::channel::<()>();
        let redis = &redis;
        // Now and then the server does not answer, so that errors show, too.
        scope.spawn(move || {
            while ended.recv_timeout(Duration::from_secs(6)) == Err(RecvTimeoutError::Timeout) {
                redis.stop_signal();
                thread::sleep(Duration::from_secs(3));
                redis.cont_signal();
            }
        });
        let (quiet, ended) = mpsc::channel::<()>();
        // Somebody else publishes on the channels of runtimes.
        scope.spawn(move || {
            while ended.recv_timeout(Duration::from_secs(1)) == Err(RecvTimeoutError::Timeout) {
                forge_messages(redis);
            }
        });
        for query in &queries {
            prometheus.wait_for_a_finite_value(query);
        }
        drop((healthy, quiet));
    });
}

/// Sends a message that proves nothing to each runtime that listens, unless the server is stopped.
fn forge_messages(redis: &RedisServer) {
    let channels = redis.try_query::<Vec<String>>(&["PUBSUB", "CHANNELS", "*:runtime:*"]);
    for channel in channels.unwrap_or_default() {
        let runtime = channel.rsplit(':').next().unwrap_or_default();
        let message = format!("granted {runtime}:1 9 9 1 60000 0 0 forged");
        // The server may stop in between; the next round is a second later.
        let _ = redis.try_query::<u64>(&["PUBLISH", &channel, &message]);
    }
}

#[test]
fn every_alert_can_be_evaluated_and_the_provoked_ones_fire() {
    let address = free_address();
    let _example = Running::example("metrics_server", &[&address, LENGTH], []);
    let prometheus = Prometheus::scraping(&[&address], &rules());
    for alert in ["LeaseLost", "StaleWriteRefused", "FenceRegression"] {
        prometheus.wait_for_alert(alert);
    }
}

/// Two processes contend for orders, and pass a report to each other that each renews. The rules
/// look at a thirtieth of their times.
#[test]
fn a_healthy_contended_service_raises_no_alert() {
    let (addresses, redis) = ([free_address(), free_address()], RedisServer::start());
    let environment = || [("REDIS_URL", redis.url())];
    let examples = addresses.each_ref().map(|address| {
        Running::example("metrics_server", &[address, LENGTH, "calm"], environment())
    });
    let prometheus =
        Prometheus::scraping(&addresses.each_ref().map(String::as_str), &quick_rules());
    let began = Instant::now();
    // There is what the rules look at: grants that were pushed, and renewed.
    for class in ["orders", "reports"] {
        let pushed =
            format!("sum(leasehold_wakeups_total{{class=\"{class}\",source=\"push\"}}) > 5");
        prometheus.wait_for_a_finite_value(&pushed);
    }
    let renewed = "sum(leasehold_renewals_total{class=\"reports\",outcome=\"renewed\"}) > 5";
    prometheus.wait_for_a_finite_value(renewed);
    thread::sleep(Duration::from_secs(40).saturating_sub(began.elapsed()));
    let raised = prometheus
        .labels("count by (alertname, class) (max_over_time(ALERTS{alertstate=\"firing\"}[2m]))");
    assert!(raised.is_empty(), "{raised:?}");
    drop(examples);
}

/// A server that does not answer raises its alert, on both processes, and it clears.
#[test]
fn a_server_out_of_reach_raises_its_alert_until_it_is_back() {
    let (addresses, redis) = ([free_address(), free_address()], RedisServer::start());
    let environment = || [("REDIS_URL", redis.url())];
    let _examples = addresses.each_ref().map(|address| {
        Running::example("metrics_server", &[address, LENGTH, "calm"], environment())
    });
    let prometheus =
        Prometheus::scraping(&addresses.each_ref().map(String::as_str), &quick_rules());
    prometheus.wait_for_a_finite_value("sum(leasehold_store_unreachable_seconds) == 0");
    redis.stop_signal();
    let firing = "count(ALERTS{alertname=\"StoreUnreachable\",alertstate=\"firing\"})";
    prometheus.wait_for_a_finite_value(&format!("{firing} == 2"));
    redis.cont_signal();
    prometheus.wait_for_a_finite_value(&format!("absent({firing})"));
}

#[test]
fn the_rules_pass_the_tool_of_prometheus() {
    promtool(&["check", "rules", &document("alerts.yml")]);
}

/// In virtual time: each fault raises its own alert in time, and no other, and it clears; a healthy
/// service raises none.
#[test]
fn every_alert_fires_in_time_and_clears() {
    let tests = concat!(env!("CARGO_MANIFEST_DIR"), "/tests/monitoring/alerts.test.yml");
    promtool(&["test", "rules", tests]);
    let text = std::fs::read_to_string(tests).expect("the tests of the rules");
    for alert in alerts() {
        let expected = format!("alertname=\"{alert}\"");
        assert!(text.contains(&expected), "no test raises {alert}");
    }
}

/// Each alert is explained in the guide, and each that is explained there exists.
#[test]
fn every_alert_is_explained() {
    let page = documents::names(&read("README.md"), "| `", "`");
    assert_eq!(page, alerts());
}

/// Instances are told apart, and chosen, wherever something is summed.
#[test]
fn every_query_tells_jobs_and_instances_apart() {
    let rules = read("alerts.yml");
    for expression in queries().iter().map(String::as_str).chain(rules.lines()) {
        for by in expression.split("by (").skip(1) {
            assert!(by.starts_with("job, instance"), "{expression}");
        }
    }
    let dashboard = read("dashboard.json");
    for query in documents::expressions() {
        let chosen = query.matches("{job=~\"$job\",instance=~\"$instance\"").count();
        assert_eq!(chosen, query.matches("leasehold_").count(), "{query}");
        // What is zero most of the time is not drawn then.
        let is_drawn = query.starts_with("histogram_quantile") || query.starts_with("vector");
        assert!(is_drawn || query.ends_with(" > 0"), "{query}");
    }
    for variable in ["job", "instance", "class"] {
        assert!(dashboard.contains(&format!("\"name\": \"{variable}\"")), "{variable}");
    }
}

/// What the library emits is on a panel, but for what an operator reads elsewhere.
#[test]
fn every_metric_is_on_a_panel() {
    let queries = documents::expressions().join("\n");
    let names = read("../metrics.md");
    for name in documents::names(&names, "| `leasehold_", "`") {
        // The panel shows it as a share of the ttl.
        let elsewhere = name == "renewal_margin_seconds";
        assert!(elsewhere || queries.contains(&format!("leasehold_{name}")), "{name}");
    }
}

fn promtool(arguments: &[&str]) {
    let checked = Command::new("promtool").args(arguments).output();
    let checked = checked.expect("promtool is installed; `scripts/test.sh --install` does that");
    let said = [checked.stdout, checked.stderr].concat();
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&said));
}
