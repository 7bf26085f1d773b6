use std::{future::poll_fn, io, task::Poll};

use nix::sys::signal::{SigSet, Signal};
use tokio::signal::unix;

/// The signals that a run takes, in the order in which it looks at them: it forwards them to its
/// command. `SIGCHLD` tells of the command.
const TAKEN: [Signal; 10] = [
    Signal::SIGTERM,
    Signal::SIGINT,
    Signal::SIGHUP,
    Signal::SIGQUIT,
    Signal::SIGUSR1,
    Signal::SIGUSR2,
    Signal::SIGWINCH,
    Signal::SIGTSTP,
    Signal::SIGCONT,
    Signal::SIGCHLD,
];

/// Lets in all signals that this process was started with as blocked: without `SIGCHLD`, the end of the
/// command would not be noticed. The command starts with no signal blocked, too.
pub(super) fn unblock() -> io::Result<()> {
    Ok(SigSet::empty().thread_set_mask()?)
}

/// The signals that this process receives from now on.
#[derive(Debug)]
pub(super) struct Signals {
    streams: Vec<(Signal, unix::Signal)>,
    /// A signal that this process has sent itself, and has not received yet.
    own: Option<Signal>,
}

impl Signals {
    /// Takes the signals. Those that this process was started with as ignored stay ignored, as `nohup`
    /// and the background of a script want it.
    pub(super) fn take() -> io::Result<Self> {
        let ignored = ignored();
        let mut streams = Vec::new();
        for signal in TAKEN {
            let number = signal as i32;
            if signal == Signal::SIGCHLD || (ignored >> (number - 1)) & 1 == 0 {
                streams.push((signal, unix::signal(unix::SignalKind::from_raw(number))?));
            }
        }
        Ok(Self { streams, own: None })
    }

    /// The next signal; never one if none is taken.
    ///
    /// Dropped, it loses none.
    pub(super) async fn next(&mut self) -> Signal {
        poll_fn(|context| {
            for (signal, stream) in &mut self.streams {
                while let Poll::Ready(Some(())) = stream.poll_recv(context) {
                    if self.own != Some(*signal) {
                        return Poll::Ready(*signal);
                    }
                    self.own = None;
                }
            }
            Poll::Pending
        })
        .await
    }

    /// Passes over a signal that this process has sent itself, once: it may come only when this process
    /// waits next.
    pub(super) fn pass_over(&mut self, own: Signal) {
        self.own = Some(own);
    }
}

/// The signals that this process ignores, a bit each; none where the system does not tell.
fn ignored() -> u64 {
    let status = std::fs::read_to_string("/proc/self/status").unwrap_or_default();
    let mask = status.lines().find_map(|line| line.strip_prefix("SigIgn:"));
    mask.and_then(|mask| u64::from_str_radix(mask.trim(), 16).ok()).unwrap_or(0)
}
