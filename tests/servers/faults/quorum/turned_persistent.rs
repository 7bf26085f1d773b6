use std::{
    fs,
    path::{Path, PathBuf},
};

use leasehold_testkit::{Patience, QuorumGroup, RedisServer};

use super::forgetful::{Loss, stays_out, votes_at_once};
use crate::support::{matrix::row, wait};

row! {
    turned_persistent: || stays_out(&LOSS), || votes_at_once(&LOSS);
    fault: "a server that granted a lease fails, loses its last writes, and starts with `appendfsync always`",
    right: "it grants nothing: the run before did not persist every write",
    control: "a server that votes as soon as it is back",
}

const LOSS: Loss = Loss { prepare: spare, lose: fail };

/// What the disk has after a failure of the machine.
const SPARED: &str = "spared";

fn folder(server: &RedisServer) -> PathBuf {
    let [_, folder]: [String; 2] = server.query(&["CONFIG", "GET", "dir"]);
    folder.into()
}

/// The log of all writes: a folder since Redis 7.0, and a file before.
fn log(folder: &Path) -> PathBuf {
    let many = folder.join("appendonlydir");
    if many.is_dir() { many } else { folder.join("appendonly.aof") }
}

fn copy(from: &Path, to: &Path) {
    if from.is_file() {
        fs::copy(from, to).expect("a copy");
        return;
    }
    fs::create_dir_all(to).expect("a folder");
    for file in fs::read_dir(from).expect("a folder") {
        let file = file.expect("a file");
        fs::copy(file.path(), to.join(file.file_name())).expect("a copy");
    }
}

/// Keeps what a disk may have after a failure of its machine.
fn spare(group: &QuorumGroup) {
    for server in group.servers() {
        server.command(&["CONFIG", "SET", "appendonly", "yes"]);
        Patience::of(wait::CEILING)
            .until(|| {
                let told: String = server.query(&["INFO", "persistence"]);
                let is_on =
                    ["aof_enabled:1", "aof_rewrite_in_progress:0", "aof_rewrite_scheduled:0"];
                is_on.iter().all(|line| told.contains(line)).then_some(())
            })
            .expect("it writes all commands");
        let folder = folder(server);
        copy(&log(&folder), &folder.join(SPARED));
    }
}

/// The machine fails; its server starts with what the disk had, and with the safest setting from now on.
fn fail(group: &QuorumGroup, number: usize) {
    let server = group.server(number);
    let folder = folder(server);
    server.kill();
    copy(&folder.join(SPARED), &log(&folder));
    server.set_for_restart("appendonly", "yes");
    server.set_for_restart("appendfsync", "always");
    server.restart();
}
