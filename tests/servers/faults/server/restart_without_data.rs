use std::thread;

use leasehold_testkit::RedisServer;

use super::{plain_counter, scene};
use crate::support::{crew::Crew, matrix::row};

row! {
    restart_without_data: protected, control;
    fault: "the server is killed and starts without its data, while a lease is held",
    right: "the holder learns of the loss; waiters are served; fences grow; scripts are sent again",
    control: "a plain counter",
}

fn protected() -> String {
    let server = RedisServer::start();
    let mut crew = Crew::start(&scene::ONE_TASK, &server.url());
    for index in 0..scene::ONE_TASK.processes {
        crew.work(20);
        let read = crew.halt(index);
        server.restart();
        crew.until_above(read);
        if index == 0 {
            // A release whose connection was cut is one, if "gone" is all that is known of it.
            thread::sleep(scene::ONE_TASK.ttl);
        }
        crew.resume(index);
    }
    crew.work(20);
    assert!(server.told("errorstats", "errorstat_NOSCRIPT") > 0);
    let finished = crew.finish();
    let seen = finished.right();
    let summary = finished.history.check().expect("it was right");
    assert!(summary.refused >= 3 && summary.lost > 0, "{summary:?}");
    scene::leaves_nothing(&server);
    format!("3 restarts: {seen}")
}

fn control() -> String {
    plain_counter::damage(&RedisServer::start(), |_| (), RedisServer::restart)
}
