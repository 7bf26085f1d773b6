use std::{
    io::{Read, Write},
    net::TcpStream,
};

use leasehold::time::{Clock, SystemClock};
use leasehold_testkit::{
    CommandKind,
    proxy::{Action, Rule},
};

use super::{
    beside::Beside,
    net::{ALONE, Net, strictly_right},
};
use crate::support::{matrix::row, wait};

row! {
    torn_frames: protected, control;
    fault: "every byte is sent alone; some messages end in the middle",
    right: "an answer is complete, or is no answer",
    control: "a reader that treats the bytes of one read as a reply",
}

fn protected() -> String {
    let net = Net::start();
    net.proxy.chop(true);
    let beside = Beside::start(&net);
    let crew = net.crew(&ALONE);
    crew.work(10);
    let torn = |kind| Rule::new(Action::Cut).replies().on(kind);
    let torn = net.strike([torn(CommandKind::Acquire), torn(CommandKind::Release)], 2);
    beside.until_renewed();
    crew.work(10);
    let finished = crew.finish();
    beside.finish();
    net.is_clean_soon();
    format!("{torn} replies torn; {}", strictly_right(&finished))
}

fn control() -> String {
    const TOKEN: u64 = 1_700_000_000_000_000;
    let net = Net::start();
    net.server.command(&["SET", "fence", &TOKEN.to_string()]);
    net.proxy.chop(true);
    let mut stream = TcpStream::connect(("127.0.0.1", net.proxy.port())).expect("a connection");
    stream.set_read_timeout(Some(wait::CEILING)).expect("a timeout");
    // How much one read brings is the machine's choice; most often it is not all. On a busy machine
    // it may be all, many times in a row.
    let until = SystemClock.now() + wait::CEILING;
    while SystemClock.now() < until {
        stream.write_all(b"INCR fence\r\n").expect("a request");
        let token = naive_read(&mut stream);
        if token < TOKEN {
            return format!("a fence of {token} for one above {TOKEN}");
        }
    }
    panic!("the naive reader got every reply whole")
}

/// Reads a number as if a reply came in one piece, which is waited for afterwards.
fn naive_read(stream: &mut TcpStream) -> u64 {
    let mut reply = vec![0; 64];
    let mut length = stream.read(&mut reply).expect("an answer");
    let token = String::from_utf8_lossy(&reply[..length]).trim_matches([':', '\r', '\n']).parse();
    while !reply[..length].ends_with(b"\r\n") {
        length += stream.read(&mut reply[length..]).expect("the rest");
    }
    token.unwrap_or_default()
}
