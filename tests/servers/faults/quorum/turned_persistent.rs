//! A server that lost its last writes, and comes back with a setting under which it would not have.

use std::{
    fs,
    path::{Path, PathBuf},
};

use leasehold_testkit::{Patience, QuorumGroup, RedisServer};

use super::forgetful::{Loss, stays_out};
use crate::support::wait;

/// Files that are written now and then.
const SPARED: &str = "spared";

fn folder(server: &RedisServer) -> PathBuf {
    let [_, folder]: [String; 2] = server.query(&["CONFIG", "GET", "dir"]);
    folder.into()
}

fn copy(from: &Path, to: &Path) {
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
        copy(&folder.join("appendonlydir"), &folder.join(SPARED));
    }
}

/// The machine fails; its server starts with what the disk had, and with the safest setting from now on.
fn fail(group: &QuorumGroup, number: usize) {
    let server = group.server(number);
    let folder = folder(server);
    server.kill();
    copy(&folder.join(SPARED), &folder.join("appendonlydir"));
    server.set_for_restart("appendonly", "yes");
    server.set_for_restart("appendfsync", "always");
    server.restart();
}

#[test]
fn a_server_that_is_persistent_only_from_now_on_stays_out() {
    println!("{}", stays_out(&Loss { prepare: spare, lose: fail }));
}
