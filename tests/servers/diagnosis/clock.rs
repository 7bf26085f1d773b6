//! A server whose clock is off.

use std::time::Duration;

use leasehold::diagnosis::{ClockOffset, Severity, Topic};
use leasehold_testkit::ClockShim;

use super::{about, connect, place, sound, tells, the_one};

const HOUR: Duration = Duration::from_secs(3600);

#[tokio::test]
async fn a_clock_that_is_off_is_told_with_its_offset() {
    let shim = ClockShim::build();
    let server = sound().clock(&shim).start();
    let locks = connect(&server.url()).await;
    assert!(about(&locks.diagnose().await, Topic::Clock).is_empty(), "it is right as yet");

    shim.forward(2 * HOUR);
    let diagnosis = locks.diagnose().await;
    let finding = the_one(&diagnosis, Topic::Clock);
    tells(finding, Severity::Warning, "P1 P2", &[" ahead of this process", "NTP"]);
    assert_eq!(finding.servers, [place(server.port())]);
    let Some(ClockOffset::Ahead(by)) = diagnosis.servers()[0].clock else { panic!("{diagnosis}") };
    assert!(by.abs_diff(2 * HOUR) < HOUR, "{by:?}");

    shim.back(27 * HOUR);
    let diagnosis = locks.diagnose().await;
    let words = [" behind of this process", "fences may repeat", "watermarks"];
    tells(the_one(&diagnosis, Topic::Clock), Severity::Danger, "P1 P2", &words);

    shim.forward(25 * HOUR);
    assert!(about(&locks.diagnose().await, Topic::Clock).is_empty(), "it is right again");
}
