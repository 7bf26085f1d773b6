//! The complete service: two copies under load, one of which is killed.

use std::{
    io::{Read, Write},
    net::TcpStream,
    sync::atomic::{AtomicBool, AtomicI64, Ordering},
    thread,
    time::Duration,
};

use leasehold_testkit::Patience;

use crate::{
    program::{Program, free_address},
    servers::Servers,
};

/// How long a copy may take to start, on a machine that is busy with other tests.
const LIMIT: Duration = Duration::from_secs(60);
const CLIENTS: usize = 4;
/// So many deposits of one each are answered before a copy is killed, and at the end.
const KILLED_AFTER: i64 = 60;
const DEPOSITS: i64 = 160;

#[test]
fn the_books_are_right_although_a_copy_is_killed_under_load_and_the_other_one_stops_cleanly() {
    let servers = Servers::start();
    let addresses = [free_address(), free_address()];
    let start = |address: &str| {
        Program::of("accounts").arguments(&[address]).on(&servers, "accounts").start()
    };
    let [doomed, other] = addresses.each_ref().map(|address| start(address));
    for address in &addresses {
        let ready = || (ask(address, "GET /health/ready")?.0 == 200).then_some(());
        Patience::of(LIMIT).until(ready).expect("the copy is ready");
    }

    // Those that were answered with 200, and those that nobody answered: they were made, or were not.
    let (paid, unknown) = (AtomicI64::new(0), AtomicI64::new(0));
    let ends = AtomicBool::new(false);
    thread::scope(|scope| {
        for client in 0..CLIENTS {
            let (paid, unknown, addresses, ends) = (&paid, &unknown, &addresses, &ends);
            scope.spawn(move || {
                for number in 0.. {
                    if paid.load(Ordering::SeqCst) >= DEPOSITS || ends.load(Ordering::SeqCst) {
                        return;
                    }
                    let account = number % 3;
                    let request = format!("POST /accounts/{account}/deposits/1");
                    match ask(&addresses[(client + number) % 2], &request) {
                        Some((200, _)) => paid.fetch_add(1, Ordering::SeqCst),
                        // Nothing was done.
                        Some((409 | 503, _)) => 0,
                        // A lease that was lost, on a machine that stood still; or no answer.
                        Some((500, _)) | None => unknown.fetch_add(1, Ordering::SeqCst),
                        Some((status, body)) => panic!("{status}: {body}"),
                    };
                }
            });
        }
        let are_paid = |count| {
            Patience::of(LIMIT).until(|| (paid.load(Ordering::SeqCst) >= count).then_some(()))
        };
        let half_way = are_paid(KILLED_AFTER);
        doomed.kill();
        let all = half_way.and_then(|()| are_paid(DEPOSITS));
        // Clients that are not served end, so that the test does.
        ends.store(true, Ordering::SeqCst);
        all.expect("the copies answer");
    });

    let (paid, unknown) = (paid.into_inner(), unknown.into_inner());
    let entered = servers.number("accounts", "SELECT count(*) FROM deposit");
    assert!((paid..=paid + unknown).contains(&entered), "{paid}, {unknown}: {entered}");
    assert_eq!(servers.number("accounts", "SELECT sum(balance)::BIGINT FROM account"), entered);
    // The leader may have been the copy that was killed: the other one takes over after the ttl.
    let added_up =
        || (servers.number("accounts", "SELECT deposits FROM total") == entered).then_some(());
    Patience::of(LIMIT).until(added_up).expect("a leader adds up all deposits");
    let stated =
        || (servers.number("accounts", "SELECT count(*) FROM statement") > 1).then_some(());
    Patience::of(LIMIT).until(stated).expect("the job runs");
    let twice = "SELECT count(*) - count(DISTINCT period) FROM statement";
    assert_eq!(servers.number("accounts", twice), 0);

    let [_, alive] = &addresses;
    let (_, metrics) = ask(alive, "GET /metrics").expect("metrics");
    assert!(metrics.contains("leasehold_acquire_total{class=\"accounts\""), "{metrics}");
    assert_eq!(ask(alive, "GET /health/live").expect("an answer").0, 200);

    // Where the transaction fails before its commit, nothing is in doubt.
    servers.number("accounts", "ALTER TABLE deposit RENAME TO gone");
    let answer = ask(alive, "POST /accounts/1/deposits/1");
    assert_eq!(answer, Some((500, "nothing was written".into())));
    other.terminate();
    other.ends_well(&["0 leases were not released"]);
    servers.leave_no_key_without_ttl();
}

/// Status and body of an answer, 503 if nobody listens; `None` if the answer is missing.
fn ask(address: &str, request: &str) -> Option<(u16, String)> {
    let Ok(mut stream) = TcpStream::connect(address) else {
        return Some((503, "nobody listens".into()));
    };
    stream.set_read_timeout(Some(Duration::from_secs(30))).ok()?;
    let head = format!("{request} HTTP/1.0\r\nHost: {address}\r\nContent-Length: 0\r\n\r\n");
    stream.write_all(head.as_bytes()).ok()?;
    let mut answer = String::new();
    stream.read_to_string(&mut answer).ok()?;
    let (head, body) = answer.split_once("\r\n\r\n")?;
    let status = head.split_whitespace().nth(1)?.parse().ok()?;
    Some((status, body.to_owned()))
}
