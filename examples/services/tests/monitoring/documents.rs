use std::{fs, path::PathBuf};

use serde_json::Value;

/// The path of a document on monitoring.
pub(crate) fn document(name: &str) -> String {
    let folder = PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../docs/monitoring");
    folder.join(name).display().to_string()
}

/// The text of a document on monitoring.
pub(crate) fn read(name: &str) -> String {
    fs::read_to_string(document(name)).expect("a document")
}

/// What stands in the lines of a text between two marks, sorted.
pub(crate) fn names(text: &str, before: &str, after: &str) -> Vec<String> {
    let lines = text.lines().filter_map(|line| line.trim_start().strip_prefix(before));
    let mut names: Vec<_> =
        lines.filter_map(|rest| rest.split(after).next().map(str::to_owned)).collect();
    names.sort();
    names
}

/// The names of the alerts.
pub(crate) fn alerts() -> Vec<String> {
    names(&read("alerts.yml"), "- alert: ", "\n")
}

/// Rules whose times are a thirtieth of those of the document: what would be seen within minutes
/// is seen within seconds. Limits are the same.
pub(crate) fn quick_rules() -> String {
    let times = [
        ("[5m]", "[10s]"),
        ("[1m]", "[2s]"),
        ("for: 10m", "for: 20s"),
        ("for: 5m", "for: 10s"),
        ("for: 1m", "for: 2s"),
    ];
    let mut rules = read("alerts.yml");
    for (time, quick) in times {
        assert!(rules.contains(time), "no rule has {time}");
        rules = rules.replace(time, quick);
    }
    rules
}

/// Every query of the dashboard, as it stands there.
pub(crate) fn expressions() -> Vec<String> {
    let dashboard: Value = serde_json::from_str(&read("dashboard.json")).expect("JSON");
    let panels = dashboard["panels"].as_array().expect("panels");
    let targets = panels.iter().flat_map(|panel| panel["targets"].as_array().expect("targets"));
    targets.map(|target| target["expr"].as_str().expect("a query").to_owned()).collect()
}

/// Every query of the dashboard, with values for its variables.
pub(crate) fn queries() -> Vec<String> {
    let values = [
        ("$__rate_interval", "10s"),
        ("$job", ".*"),
        ("$instance", ".*"),
        ("$class", ".*"),
        ("$ttl", "2"),
    ];
    let filled = |query: String| {
        values.iter().fold(query, |query, (variable, value)| query.replace(variable, value))
    };
    expressions().into_iter().map(filled).collect()
}
