use leasehold::{LockRuntime, Released};

use super::{
    idling::{server, until_cut},
    naive,
    net::Net,
};
use crate::support::{matrix::row, patient, raw, wait};

row! {
    idle_cut: protected, control;
    fault: "idle connections are cut by the server's `timeout`, CLIENT KILL, resets, a restart",
    right: "the next try is sent on a new connection; there is no error",
    control: "a connection that is kept until a command fails on it",
}

/// What cuts the connections while nobody uses them.
const CUTS: [fn(&Net); 4] = [
    // The server's `timeout` alone.
    |_| {},
    |net| assert!(net.server.query::<u32>(&["CLIENT", "KILL", "TYPE", "normal"]) > 0),
    |net| assert!(net.proxy.reset_all() > 0),
    |net| net.server.restart(),
];

fn protected() -> String {
    wait::on_one_thread(async {
        let net = server();
        let locks = patient::builder().connect(&net.url()).await.expect("the server answers");
        let mut tries = 0;
        for cut in CUTS {
            // Both connections are in use.
            for name in ["a", "b", "c", "d"] {
                try_and_release(&locks, name).await;
            }
            cut(&net);
            until_cut(&net).await;
            for name in ["a", "b", "c", "d"] {
                try_and_release(&locks, name).await;
                tries += 1;
            }
            cut(&net);
            until_cut(&net).await;
            locks.inspect("a").await.expect("an answer");
        }
        net.is_clean_soon();
        format!("{tries} tries after {} cuts, each of them granted", 2 * CUTS.len())
    })
}

async fn try_and_release(locks: &LockRuntime, name: &str) {
    let tried = locks.lock(name).expect("a name").try_acquire().await;
    let guard = tried.expect("no error").expect("a free lock");
    assert_eq!(guard.release().await.expect("held to the end"), Released::Ended);
}

fn control() -> String {
    wait::on_one_thread(async {
        let net = server();
        let mut failed = 0;
        for cut in CUTS {
            let mut connection = raw::connect(&net.url()).await;
            let ping = naive::command(&["PING"]);
            ping.query_async::<String>(&mut connection).await.expect("an answer");
            cut(&net);
            until_cut(&net).await;
            let tried = naive::command(&["SET", "lock", "me", "NX", "PX", "60000"]);
            let tried = tried.query_async::<Option<String>>(&mut connection).await;
            failed += usize::from(tried.is_err());
            net.server.flush_all();
        }
        assert_eq!(failed, CUTS.len(), "the control came to no harm");
        format!("{failed} of {failed} tries failed, with the server there")
    })
}
