use std::{env, fs, io, os::fd::AsFd, process::ExitCode, time::Duration};

use leasehold::time::{Clock, SystemClock};
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
    let mut orders = Orders::of(io::stdin());
    loop {
        // A grace that was put off meanwhile is not begun.
        orders.read(&mut watch, Duration::ZERO);
        let now = SystemClock.now();
        let until = match watch.deed(now) {
            GuardDeed::Term => {
                group.send(Signal::SIGTERM);
                // One that is stopped acts on it when it goes on.
                group.send(Signal::SIGCONT);
                continue;
            }
            GuardDeed::Kill => {
                group.send(Signal::SIGKILL);
                return ExitCode::SUCCESS;
            }
            GuardDeed::Wait(until) => until,
        };
        if watch.is_ending() && !orders.are_open && group.is_gone() {
            return ExitCode::SUCCESS;
        }
        let longest = if watch.is_ending() { *GROUP_LOOKS.start() } else { EVERY };
        let left = until.map_or(longest, |until| until.saturating_since(now).min(longest));
        orders.read(&mut watch, left);
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

/// The lines that the run writes.
struct Orders<F> {
    pipe: F,
    unread: Vec<u8>,
    are_open: bool,
}

impl<F: AsFd> Orders<F> {
    fn of(pipe: F) -> Self {
        Self { pipe, unread: Vec::new(), are_open: true }
    }

    /// Waits for a while until something comes, and reads all that is there.
    fn read(&mut self, watch: &mut GuardWatch, patience: Duration) {
        // As much as a pipe holds: a later order may be behind those that fill a part of it.
        let mut bytes = vec![0; 65_536];
        // Rounded up, so that it does not wake up before the time.
        let millis = if patience.is_zero() { 0 } else { patience.as_millis() + 1 };
        let patience = PollTimeout::from(u16::try_from(millis).unwrap_or(u16::MAX));
        let mut polled = [PollFd::new(self.pipe.as_fd(), PollFlags::POLLIN)];
        let polled = if self.are_open { &mut polled[..] } else { &mut [] };
        if !matches!(poll(polled, patience), Ok(1..)) {
            return;
        }
        match read(&self.pipe, &mut bytes) {
            Err(Errno::EINTR | Errno::EAGAIN) => {}
            Ok(0) | Err(_) => {
                self.are_open = false;
                watch.on_end_of_run(SystemClock.now());
            }
            Ok(count) => {
                self.unread.extend(&bytes[..count]);
                self.take_lines(watch);
            }
        }
    }

    fn take_lines(&mut self, watch: &mut GuardWatch) {
        while let Some(end) = self.unread.iter().position(|byte| *byte == b'\n') {
            let line: Vec<u8> = self.unread.drain(..=end).collect();
            if let Some(order) = Order::read(&String::from_utf8_lossy(&line[..end])) {
                watch.on_order(order, SystemClock.now());
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use std::io::Write;

    use leasehold::time::Instant;

    use super::*;

    fn watch() -> GuardWatch {
        let grace = Duration::from_millis(500);
        GuardWatch::new(Patience { grace, grace_of_orphans: grace })
    }

    #[test]
    fn the_last_of_many_orders_counts() {
        let (reader, mut writer) = io::pipe().unwrap();
        let (mut watch, mut orders) = (watch(), Orders::of(reader));
        let begins = |seconds| Instant::at(Duration::from_secs(seconds));
        for seconds in 1..=200 {
            writer.write_all(Order::Begins(begins(seconds)).line().as_bytes()).unwrap();
        }
        orders.read(&mut watch, Duration::ZERO);
        assert_eq!(watch.deed(begins(199)), GuardDeed::Wait(Some(begins(200))));
        drop(writer);
        orders.read(&mut watch, Duration::ZERO);
        assert!(!orders.are_open && watch.is_ending());
    }

    #[test]
    fn an_order_may_come_in_two_parts() {
        let (reader, mut writer) = io::pipe().unwrap();
        let (mut watch, mut orders) = (watch(), Orders::of(reader));
        for part in ["end", "ing\n"] {
            assert!(!watch.is_ending());
            writer.write_all(part.as_bytes()).unwrap();
            orders.read(&mut watch, Duration::ZERO);
        }
        assert!(watch.is_ending() && orders.are_open);
    }
}
