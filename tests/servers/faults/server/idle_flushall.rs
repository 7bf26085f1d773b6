use leasehold_testkit::RedisServer;

use super::forgotten_turn;
use crate::support::matrix::Row;

const ROW: Row = Row {
    id: "idle-flushall",
    fault: "FLUSHALL while a process keeps the lock idle; another process takes the lock",
    right: "late writes under the idle lock are refused; its process learns of the loss; fences grow",
    control: "a storage that does not compare fences",
};

#[test]
fn idle_flushall() {
    ROW.run(protected, control);
}

fn protected() -> String {
    forgotten_turn::is_refused(RedisServer::flush_all)
}

fn control() -> String {
    forgotten_turn::is_accepted(RedisServer::flush_all)
}
