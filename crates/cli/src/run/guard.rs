use std::{env, fs, io, os::fd::AsFd, process::ExitCode, time::Duration};

use leasehold::time::{Clock, Instant, SystemClock};
use nix::{
    errno::Errno,
    poll::{PollFd, PollFlags, PollTimeout, poll},
    sys::signal::{SigSet, Signal},
    unistd::{Pid, close, read},
};

use crate::durations::{EVERY, GROUP_LOOKS};

use super::{
    group::Group,
    guard_rules::{GuardDeed, GuardWatch, Order, Patience},
};

/// Guards the command of the run at the other end of the standard input, until that has ended.
// ADR 0045
pub(crate) fn guard() -> ExitCode {
    close_inherited();
    // A signal that ends the run does not end its guard: it ends by itself.
    if SigSet::all().thread_block().is_err() {
        return ExitCode::FAILURE;
    }
    let words: Vec<_> = env::args().skip(2).collect();
    let Some((patience, group)) = asked(&words) else { return ExitCode::FAILURE };
    let mut watch = GuardWatch::new(patience);
    let group = Group(Pid::from_raw(group));
    let mut orders = Some(Orders::default());
    loop {
        // A grace that was put off meanwhile is not begun.
        read_orders(&mut watch, &mut orders, PollTimeout::ZERO);
        match watch.deed(SystemClock.now()) {
            GuardDeed::Leave => return ExitCode::SUCCESS,
            GuardDeed::Term => {
                group.send(Signal::SIGTERM);
                // One that is stopped acts on it when it goes on.
                group.send(Signal::SIGCONT);
            }
            GuardDeed::Kill => {
                group.send(Signal::SIGKILL);
            }
            GuardDeed::Wait(until) => {
                if watch.is_ending() && orders.is_none() && group.is_gone() {
                    return ExitCode::SUCCESS;
                }
                wait(&mut watch, &mut orders, until);
            }
        }
    }
}

/// Both graces in milliseconds, and the process group.
fn asked(words: &[String]) -> Option<(Patience, i32)> {
    let [grace, grace_of_orphans, group] = words else { return None };
    let millis = |word: &String| Some(Duration::from_millis(word.parse().ok()?));
    let patience = Patience { grace: millis(grace)?, grace_of_orphans: millis(grace_of_orphans)? };
    // To signal group 0 or 1 is to signal others.
    let group = group.parse().ok().filter(|group| *group > 1)?;
    Some((patience, group))
}

/// Closes what the caller of the run had opened beside the standard streams: a lock on such a file
/// would last for as long as the guard.
fn close_inherited() {
    let listed = fs::read_dir("/dev/fd").into_iter().flatten().flatten();
    let files: Vec<i32> =
        listed.filter_map(|file| file.file_name().to_str()?.parse().ok()).collect();
    for file in files.into_iter().filter(|file| *file > 2) {
        // The list itself was a file, and is closed by now.
        let _ = close(file);
    }
}

/// Waits until then, or for the next orders.
fn wait(watch: &mut GuardWatch, orders: &mut Option<Orders>, until: Option<Instant>) {
    let now = SystemClock.now();
    let left = until.map_or(EVERY, |until| until.saturating_since(now).min(EVERY));
    let left = if watch.is_ending() { left.min(*GROUP_LOOKS.start()) } else { left };
    // Rounded up, so that it does not wake up before the time.
    let millis = u16::try_from(left.as_millis()).unwrap_or(u16::MAX).saturating_add(1);
    read_orders(watch, orders, PollTimeout::from(millis));
}

/// Reads what the run has told, and waits for it for a while.
fn read_orders(watch: &mut GuardWatch, orders: &mut Option<Orders>, patience: PollTimeout) {
    let stdin = io::stdin();
    let mut polled = [PollFd::new(stdin.as_fd(), PollFlags::POLLIN)];
    let polled = if orders.is_some() { &mut polled[..] } else { &mut [] };
    if !matches!(poll(polled, patience), Ok(1..)) {
        return;
    }
    let is_open = orders.as_mut().is_some_and(|orders| orders.read(watch));
    if !is_open {
        *orders = None;
        watch.on_end_of_run(SystemClock.now());
    }
}

/// The lines that the run writes.
#[derive(Default)]
struct Orders {
    unread: Vec<u8>,
}

impl Orders {
    /// Reads what has come. Returns whether more may come.
    fn read(&mut self, watch: &mut GuardWatch) -> bool {
        let mut bytes = [0; 512];
        let count = match read(io::stdin(), &mut bytes) {
            Ok(0) => return false,
            Ok(count) => count,
            Err(Errno::EINTR | Errno::EAGAIN) => return true,
            Err(_) => return false,
        };
        self.unread.extend(&bytes[..count]);
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            let line = String::from_utf8_lossy(&line[..end]).parse::<Order>();
            if let Ok(order) = line {
                watch.on_order(order, SystemClock.now());
            }
        }
        true
    }
}
