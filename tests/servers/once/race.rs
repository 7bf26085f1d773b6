use std::{convert::Infallible, thread, time::Duration};

use leasehold::once::OnceOutcome;
use leasehold_testkit::{ChildProcess, RedisServer};
use tokio::task::JoinSet;

use super::{CHILD, server::runtime_at};
use crate::support::{child, wait};

const PROCESSES: usize = 5;
const FORMS: usize = 12;
/// How often each process submits each form.
const CLICKS: usize = 3;

/// All processes submit all forms, several times each, as soon as they are told to.
#[test]
fn of_many_processes_that_submit_the_same_form_exactly_one_runs_it() {
    let runs = runs_of(&RedisServer::start(), "3600");
    assert!(runs.iter().all(|runs| *runs == 1), "{runs:?}");
}

/// The control: one at a time, but without a window.
#[test]
fn without_the_window_forms_run_more_than_once() {
    let runs = runs_of(&RedisServer::start(), "0");
    assert!(runs.iter().all(|runs| *runs >= 1), "{runs:?}");
    assert!(runs.iter().sum::<usize>() > FORMS, "{runs:?}");
}

fn runs_of(server: &RedisServer, window: &str) -> Vec<usize> {
    let args = [("url", &*server.url()), ("window", window)];
    let mut crew: Vec<ChildProcess> =
        (0..PROCESSES).map(|_| child::spawn(CHILD, "click", &args)).collect();
    for process in &mut crew {
        process.wait_for_line("ready", wait::CEILING);
    }
    let _: String = server.query(&["SET", "go", "1"]);
    for process in &mut crew {
        process.wait_for_line("done", wait::CEILING);
    }
    let lines: Vec<String> = crew.iter().flat_map(|process| process.seen().to_vec()).collect();
    let count = |what: String| lines.iter().filter(|line| **line == what).count();
    let told = lines.iter().filter(|line| line.starts_with("told ")).count();
    let runs: Vec<usize> = (0..FORMS).map(|form| count(format!("ran {form}"))).collect();
    // Every click was answered.
    assert_eq!(runs.iter().sum::<usize>() + told, PROCESSES * FORMS * CLICKS);
    runs
}

/// Submits every form several times at once.
pub(crate) async fn click() {
    let locks = runtime_at(&child::arg("url")).await;
    let window = Duration::from_secs(child::arg("window").parse().expect("a number"));
    let client = redis::Client::open(child::arg("url")).expect("an address");
    let mut server = client.get_connection().expect("the server answers");
    println!("ready");
    while !redis::cmd("EXISTS").arg("go").query::<bool>(&mut server).expect("it answers") {
        thread::sleep(Duration::from_millis(1));
    }
    let mut clicks = JoinSet::new();
    for click in 0..FORMS * CLICKS {
        let form = click % FORMS;
        let name = format!("submit/user-7/form-{form}");
        let once = locks.once(name).expect("a name").window(window);
        clicks.spawn(async move {
            let work = |_| async {
                println!("ran {form}");
                Ok::<_, Infallible>(())
            };
            match once.run(work).await {
                Ok(OnceOutcome::Ran(())) => {}
                Ok(OnceOutcome::Duplicate(_)) => println!("told {form}"),
                Err(error) => panic!("{error}"),
            }
        });
    }
    clicks.join_all().await;
    println!("done");
}
