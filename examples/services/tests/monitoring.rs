//! The dashboard and the alert rules, checked by a real Prometheus that scrapes the example.
#![expect(clippy::disallowed_methods, reason = "a scrape takes real time")]

#[path = "monitoring/http.rs"]
mod http;
#[path = "monitoring/process.rs"]
mod process;
#[path = "monitoring/prometheus.rs"]
mod prometheus;

use std::{fs, path::PathBuf, process::Command};

use process::Running;
use prometheus::Prometheus;
use serde_json::Value;

/// How long the example runs, in seconds: it is ended when all was seen.
const LENGTH: &str = "120";

#[test]
fn every_query_of_the_dashboard_has_a_finite_value() {
    let address = process::free_address();
    let _example = Running::example("metrics_server", &[&address, LENGTH]);
    let prometheus = Prometheus::scraping(&address);
    let queries = queries();
    assert!(queries.len() > 20, "{queries:?}");
    for query in &queries {
        prometheus.wait_for_a_finite_value(query);
    }
}

#[test]
fn every_alert_can_be_evaluated_and_the_provoked_ones_fire() {
    let address = process::free_address();
    let _example = Running::example("metrics_server", &[&address, LENGTH]);
    let prometheus = Prometheus::scraping(&address);
    for alert in ["LeaseLost", "StaleWriteRefused", "FenceRegression"] {
        prometheus.wait_for_alert(alert);
    }
}

#[test]
fn the_rules_pass_the_tool_of_prometheus() {
    let rules = document("alerts.yml");
    let checked = Command::new("promtool").args(["check", "rules"]).arg(rules).output();
    let checked = checked.expect("promtool is installed; `scripts/test.sh --install` does that");
    assert!(checked.status.success(), "{}", String::from_utf8_lossy(&checked.stderr));
}

/// Whoever reads of an alert finds it explained, and the other way round.
#[test]
fn every_alert_is_explained() {
    let names = |text: &str, before: &str, after: &str| -> Vec<String> {
        let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(before));
        let mut names: Vec<_> =
            lines.filter_map(|rest| rest.split(after).next().map(str::to_owned)).collect();
        names.sort();
        names
    };
    let read = |file| fs::read_to_string(document(file)).expect("a document");
    let rules = names(&read("alerts.yml"), "- alert: ", "\n");
    let page = names(&read("README.md"), "| `", "`");
    assert_eq!(page, rules);
}

fn document(name: &str) -> PathBuf {
    PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/monitoring").join(name)
}

/// Every query of the dashboard, with values for its variables.
fn queries() -> Vec<String> {
    let text = fs::read_to_string(document("dashboard.json")).expect("the dashboard");
    let dashboard: Value = serde_json::from_str(&text).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    let filled = |query: &str| {
        let query = query.replace("$__rate_interval", "10s");
        query.replace("$class", ".*").replace("$ttl", "2")
    };
    targets.map(|target| filled(target["expr"].as_str().expect("a query"))).collect()
}
