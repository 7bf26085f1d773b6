use std::{fs, time::Duration};

use leasehold::Released;
use leasehold_testkit::RedisServer;

use super::{refusal, scene};
use crate::support::{matrix::row, wait};

row! {
    misconf: protected;
    fault: "the server cannot save its snapshot, and accepts no writes",
    right: "a clear error; nothing is written; free afterwards",
}

const TTL: Duration = Duration::from_secs(20);
/// The name of the snapshot, which a folder has.
const SNAPSHOT: &str = "snapshot";

fn protected() -> String {
    let server = RedisServer::builder().arg("dbfilename", SNAPSHOT).start();
    scene::set(&server, "save", "3600 1000000");
    // Nobody can replace a folder by a file, whatever the rights.
    let snapshot = server.socket().with_file_name(SNAPSHOT);
    fs::create_dir(&snapshot).expect("a folder");
    scene::run(async {
        let locks = scene::connect(&server.url(), TTL).await;
        let held = scene::take(&locks, "held").await;
        save(&server, "rdb_last_bgsave_status:err");
        let before = server.query::<u64>(&["DBSIZE"]);
        for _ in 0..3 {
            refusal::of(&locks, "free", "MISCONF", "the server cannot persist; see its log").await;
        }
        assert!(server.query::<u64>(&["DBSIZE"]) <= before);
        assert!(!server.query::<bool>(&["EXISTS", "leasehold:{free}:lease"]));
        assert!(held.is_held());
        fs::remove_dir(&snapshot).expect("an empty folder");
        save(&server, "rdb_last_bgsave_status:ok");
        let free = scene::take(&locks, "free").await;
        for guard in [held, free] {
            assert_eq!(guard.release().await.expect("held to the end"), Released::Ended);
        }
    });
    "3 clear errors, nothing written; served after the next snapshot".into()
}

/// Saves a snapshot in the background, which ends so.
fn save(server: &RedisServer, status: &str) {
    server.command(&["BGSAVE"]);
    wait::block_until(status, || {
        let told: String = server.query(&["INFO", "persistence"]);
        told.contains(status) && told.contains("rdb_bgsave_in_progress:0")
    });
}
