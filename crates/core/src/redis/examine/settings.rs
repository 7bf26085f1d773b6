use std::collections::BTreeMap;

use futures_util::future::join_all;
use redis::cmd;

use super::asker::Asker;
use crate::{
    diagnosis::facts::{Info, NotRead, Reading, Settings},
    redis::decode::text,
};

/// The sections of `INFO` that the rules read. Before Redis 7, one command has one section.
const SECTIONS: [&str; 3] = ["memory", "persistence", "replication"];

/// The settings that the rules read: none of them is secret. Each is asked for by its full name,
/// because a pattern may match a password.
const SETTINGS: [&str; 10] = [
    "maxmemory",
    "maxmemory-policy",
    "appendonly",
    "appendfsync",
    "save",
    "min-replicas-to-write",
    "min-replicas-max-lag",
    "replica-read-only",
    "cluster-node-timeout",
    "cluster-require-full-coverage",
];

/// The fields of `INFO`.
pub(super) async fn info(asker: &Asker) -> Reading<Info> {
    let section = |name: &'static str| async move {
        let told = asker.ask(cmd("INFO").arg(name)).await?;
        text(&told).ok_or(NotRead::Strange)
    };
    let mut info = Info::default();
    for section in join_all(SECTIONS.map(section)).await {
        info.add(&section?);
    }
    Ok(info)
}

/// What `CONFIG GET` tells; a server that does not know a setting leaves it out.
pub(super) async fn settings(asker: &Asker) -> Settings {
    let value = |name: &'static str| async move {
        let mut command = cmd("CONFIG");
        command.arg("GET").arg(name);
        let mut told: BTreeMap<String, String> = asker.ask_for(&command).await?;
        Ok(told.remove(name).map(|value| (name, value)))
    };
    let answers: Vec<Reading<_>> = join_all(SETTINGS.map(value)).await;
    let is_read = answers.iter().any(Result::is_ok);
    let mut reasons = answers.iter().filter_map(|answer| answer.as_ref().err());
    let not_read = reasons.next().filter(|_| !is_read).cloned();
    Settings { values: answers.into_iter().flatten().flatten().collect(), not_read }
}
