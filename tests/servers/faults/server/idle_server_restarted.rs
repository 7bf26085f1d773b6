use leasehold_testkit::RedisServer;

use super::forgotten_turn;
use crate::support::matrix::row;

row! {
    idle_server_restarted: protected, control;
    fault: "the server starts again without its data while a process keeps the lock idle",
    right: "late writes under the idle lock are refused; its process learns of the loss; fences grow",
    control: "a storage that does not compare fences",
}

fn protected() -> String {
    forgotten_turn::is_refused(RedisServer::restart)
}

fn control() -> String {
    forgotten_turn::is_accepted(RedisServer::restart)
}
