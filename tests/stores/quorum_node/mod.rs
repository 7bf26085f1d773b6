//! Random commands to one node of a quorum: the short ways of its script do what the long ones do, and
//! the node of the simulation does what the script does.
//!
//! The script gets its time from a key, so that both sides of a comparison see the same moment.

mod answer;
mod command;
mod script;

use leasehold_core::LockName;
use leasehold_testkit::{
    RedisServer,
    sim::{Dice, MemoryNode},
};

use self::{
    answer::{of_memory, of_script},
    command::{Reach, Walk},
    script::{Node, TOLERANCE, Ways},
};

/// How many walks there are, and how many calls each of them has.
const WALKS: u64 = 150;
const CALLS: usize = 40;

fn names(walk: u64) -> [LockName; 2] {
    ["a", "b"].map(|which| LockName::new(format!("{walk}/{which}")).expect("a name"))
}

#[test]
fn the_short_ways_do_what_the_long_ones_do() {
    let server = RedisServer::start();
    let (mut short, mut long) = (Node::on(&server, Ways::All), Node::on(&server, Ways::Long));
    let mut short_ones = 0;
    for number in 0..WALKS {
        let names = names(number);
        let mut walk = Walk::new(Dice::new(number), Reach::Everything);
        for call in 0..CALLS {
            let (now, commands) = walk.next(&names);
            let what = || format!("walk {number}, call {call}, {commands:?}");
            let (expected, told) = (long.run(now, &commands), long.told());
            let found = short.run(now, &commands);
            for ((command, expected), found) in commands.iter().zip(&expected).zip(&found) {
                let (like, is) = (of_script(command, expected), of_script(command, found));
                // A short grant leaves out what it does not need.
                assert_eq!(like, is, "{}", what());
                short_ones += usize::from(expected != found);
                walk.learn(&is);
            }
            assert_eq!(told, short.told(), "{}", what());
            for name in &names {
                assert_eq!(long.keeps(name), short.keeps(name), "{}", what());
            }
        }
    }
    assert!(short_ones > 50, "only {short_ones} grants went the short way");
}

#[test]
fn the_node_of_the_simulation_does_what_the_script_does() {
    let server = RedisServer::start();
    let mut script = Node::on(&server, Ways::All);
    for number in 0..WALKS {
        let (names, mut memory) = (names(number), MemoryNode::new(TOLERANCE, None));
        let mut walk = Walk::new(Dice::new(number), Reach::Simulated);
        for call in 0..CALLS {
            let (now, commands) = walk.next(&names);
            let answers = script.run(now, &commands);
            let mut told = Vec::new();
            for (command, answer) in commands.iter().zip(&answers) {
                let (expected, messages) = memory.execute(now, command);
                let (expected, found) = (of_memory(command, &expected), of_script(command, answer));
                assert_eq!(expected, found, "walk {number}, call {call}, {commands:?}");
                walk.learn(&found);
                told.extend(messages.iter().map(|(_, push)| answer::of_push(push)));
            }
            assert_eq!(told, script.told(), "walk {number}, call {call}, {commands:?}");
        }
    }
}
