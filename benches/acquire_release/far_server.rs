#![expect(clippy::disallowed_methods, reason = "a benchmark measures real time")]

use std::{
    io::{self, Read, Write},
    net::{Shutdown, TcpListener, TcpStream},
    sync::mpsc,
    thread,
    time::{Duration, Instant},
};

/// The most bytes that are read at once.
const CHUNK: usize = 64 * 1024;

/// Puts a server far away: returns an address where each byte arrives late by `delay`, each way.
///
/// Bytes are under way side by side, as on a long cable: the delay limits no rate. It lasts until
/// the process ends.
pub(crate) fn far_away(server: &str, delay: Duration) -> io::Result<String> {
    let address = server.trim_start_matches("redis://").trim_end_matches('/').to_owned();
    let listener = TcpListener::bind("127.0.0.1:0")?;
    let url = format!("redis://{}", listener.local_addr()?);
    thread::spawn(move || {
        for near in listener.incoming() {
            let joined = near.and_then(|near| join(near, &address, delay));
            if let Err(error) = joined {
                eprintln!("the cable to {address} is broken: {error}");
            }
        }
    });
    Ok(url)
}

/// Joins a connection to a new one to the server, by one cable for each direction.
fn join(near: TcpStream, address: &str, delay: Duration) -> io::Result<()> {
    let far = TcpStream::connect(address)?;
    near.set_nodelay(true)?;
    far.set_nodelay(true)?;
    carry(near.try_clone()?, far.try_clone()?, delay);
    carry(far, near, delay);
    Ok(())
}

/// Carries bytes until the end of the stream, or until one end fails: then the other end is told.
fn carry(mut from: TcpStream, mut to: TcpStream, delay: Duration) {
    let (sender, under_way) = mpsc::channel::<(Instant, Vec<u8>)>();
    thread::spawn(move || {
        let mut chunk = vec![0; CHUNK];
        while let Ok(read @ 1..) = from.read(&mut chunk) {
            if sender.send((Instant::now() + delay, chunk[..read].to_vec())).is_err() {
                break;
            }
        }
    });
    thread::spawn(move || {
        for (due, bytes) in under_way {
            thread::sleep(due.saturating_duration_since(Instant::now()));
            if to.write_all(&bytes).is_err() {
                break;
            }
        }
        // The end may be closed already.
        let _ = to.shutdown(Shutdown::Both);
    });
}
