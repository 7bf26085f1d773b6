use std::{
    fs,
    process::Command,
    thread,
    time::{Duration, Instant},
};

use serde_json::Value;
use tempfile::TempDir;

use super::{
    http,
    process::{Running, free_address},
};

/// Far more than some scrapes take, even on a busy machine.
const CEILING: Duration = Duration::from_secs(60);
const PAUSE: Duration = Duration::from_millis(200);

/// A private Prometheus that scrapes some addresses every second.
#[derive(Debug)]
pub(crate) struct Prometheus {
    address: String,
    _process: Running,
    _folder: TempDir,
}

impl Prometheus {
    pub(crate) fn scraping(targets: &[&str], rules: &str) -> Self {
        let folder = tempfile::tempdir().expect("a folder");
        let config = folder.path().join("prometheus.yml");
        let targets: Vec<String> = targets.iter().map(|target| format!("'{target}'")).collect();
        let text = format!(
            "global: {{scrape_interval: 1s, evaluation_interval: 1s}}\n\
             rule_files: ['alerts.yml']\n\
             scrape_configs: [{{job_name: example, static_configs: [{{targets: [{}]}}]}}]\n",
            targets.join(", ")
        );
        fs::write(folder.path().join("alerts.yml"), rules).expect("a file");
        fs::write(&config, text).expect("a file");
        let address = free_address();
        let process = Running::start(
            Command::new("prometheus")
                .arg(format!("--config.file={}", config.display()))
                .arg(format!("--storage.tsdb.path={}", folder.path().join("data").display()))
                .arg(format!("--web.listen-address={address}")),
        );
        Self { address, _process: process, _folder: folder }
    }

    /// Waits until a query gives a number.
    pub(crate) fn wait_for_a_finite_value(&self, query: &str) {
        wait_for(query, || self.values(query).into_iter().any(f64::is_finite).then_some(()));
    }

    /// The present values of a query; none while there is no answer.
    pub(crate) fn values(&self, query: &str) -> Vec<f64> {
        let number = |row: &Value| row["value"][1].as_str()?.parse().ok();
        self.rows(query).iter().filter_map(number).collect()
    }

    /// The labels of the present rows of a query.
    pub(crate) fn labels(&self, query: &str) -> Vec<String> {
        self.rows(query).iter().map(|row| row["metric"].to_string()).collect()
    }

    fn rows(&self, query: &str) -> Vec<Value> {
        let answer = http::get(&self.address, "/api/v1/query", &format!("query={query}"));
        let rows = answer.and_then(|answer| answer["data"]["result"].as_array().cloned());
        rows.unwrap_or_default()
    }

    /// Waits until an alert fires.
    pub(crate) fn wait_for_alert(&self, name: &str) {
        wait_for(name, || {
            let answer = http::get(&self.address, "/api/v1/alerts", "")?;
            let alerts = answer["data"]["alerts"].as_array()?;
            let is_it = |alert: &&Value| alert["labels"]["alertname"] == name;
            alerts.iter().find(is_it).filter(|alert| alert["state"] == "firing").map(|_| ())
        });
    }
}

fn wait_for(what: &str, mut seen: impl FnMut() -> Option<()>) {
    let end = Instant::now() + CEILING;
    while seen().is_none() {
        assert!(Instant::now() < end, "not within {CEILING:?}: {what}");
        thread::sleep(PAUSE);
    }
}
