//! The program as people use it: real processes, signals, terminals and servers.

mod bad_input;
mod bench;
mod counter;
mod doctor;
mod faults;
mod guide;
mod health;
mod hostile_label;
mod look;
mod manual;
mod output;
mod password;
mod quorum;
mod release;
mod run;
mod setups;
mod support;
mod told_by_others;
mod top;
mod topologies;
mod windows;

use faults::matrix;
