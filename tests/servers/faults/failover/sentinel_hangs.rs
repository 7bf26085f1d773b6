use std::{sync::mpsc, thread, time::Duration};

use leasehold_testkit::{SentinelGroup, sentinel::Sentinel};

use crate::support::{
    crew::{Crew, Plan},
    matrix::row,
};

row! {
    sentinel_hangs: protected, control;
    fault: "one of three Sentinels hangs, the first of the address; then the master is killed",
    right: "processes connect, and follow the other two to the new master; no increment is lost",
    control: "a client that asks one Sentinel after the other, without a deadline",
}

/// How long the control waits: the other two would answer within milliseconds.
const WAITED: Duration = Duration::from_secs(1);

fn protected() -> String {
    let mut group = SentinelGroup::start();
    group.sentinels()[0].pause();
    let crew = Crew::start(&Plan::PROTECTED, &group.url());
    crew.work(20);
    group.kill_master();
    // Another server is the master now.
    let _ = group.master();
    crew.work(20);
    let seen = crew.finish().right();
    group.sentinels()[0].resume();
    format!("connected, and went on at the new master: {seen}")
}

fn control() -> String {
    let group = SentinelGroup::start();
    let [first, others @ ..] = group.sentinels() else { panic!("three Sentinels") };
    first.pause();
    let urls: Vec<_> = group.sentinels().iter().map(Sentinel::url).collect();
    let (answer, answered) = mpsc::channel();
    let asking = thread::spawn(move || answer.send(urls.iter().find_map(|url| ask(url))));
    let waited = answered.recv_timeout(WAITED);
    assert!(waited.is_err(), "the control came to no harm: {waited:?}");
    assert!(others.iter().all(|other| ask(&other.url()).is_some()), "the others hang, too");
    first.resume();
    asking.join().expect("the thread ends").expect("somebody listens");
    "no answer while it hangs, although two others name the master".into()
}

/// The port of the master that a Sentinel names.
fn ask(url: &str) -> Option<u16> {
    let mut connection = redis::Client::open(url).ok()?.get_connection().ok()?;
    let mut command = redis::cmd("SENTINEL");
    command.arg("GET-MASTER-ADDR-BY-NAME").arg(SentinelGroup::MASTER);
    let (_, port): (String, u16) = command.query(&mut connection).ok()?;
    Some(port)
}
