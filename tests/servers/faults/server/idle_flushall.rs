use leasehold_testkit::RedisServer;

use super::forgotten_turn;
use crate::support::matrix::row;

row! {
    idle_flushall: protected, control;
    fault: "FLUSHALL while a process keeps the lock idle; another process takes the lock",
    right: "late writes under the idle lock are refused; its process learns of the loss; fences grow",
    control: "a storage that does not compare fences",
}

fn protected() -> String {
    forgotten_turn::is_refused(RedisServer::flush_all)
}

fn control() -> String {
    forgotten_turn::is_accepted(RedisServer::flush_all)
}
