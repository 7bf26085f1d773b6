use leasehold_testkit::RedisServer;

use super::forgotten_turn;
use crate::support::matrix::Row;

const ROW: Row = Row {
    id: "idle-server-restarted",
    fault: "the server starts again without its data while a process keeps the lock idle",
    right: "late writes under the idle lock are refused; its process learns of the loss; fences grow",
    control: "a storage that does not compare fences",
};

#[test]
fn idle_server_restarted() {
    ROW.run(protected, control);
}

fn protected() -> String {
    forgotten_turn::is_refused(RedisServer::restart)
}

fn control() -> String {
    forgotten_turn::is_accepted(RedisServer::restart)
}
