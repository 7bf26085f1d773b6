use std::{
    cell::Cell,
    fmt,
    future::Future,
    mem,
    pin::Pin,
    process,
    sync::Arc,
    task::{Context, Poll, ready},
};

use crate::{
    clock::{Clock, Instant},
    durations::SAME_PROCESS,
    store::{StoreError, StoreErrorKind},
};

/// The process in which something was made.
///
/// A fork copies the memory of a process, and of its threads the one that forks. In the copy no
/// other thread renews, and a mutex that another thread had at that moment is never let go. So
/// whatever belongs to a process is asked for its origin before anything else.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
// ADR 0017
pub struct Origin(Option<u32>);

/// The process as a thread has seen it last.
#[derive(Clone, Copy)]
struct Seen {
    pid: u32,
    at: Instant,
}

thread_local! {
    static SEEN: Cell<Option<Seen>> = const { Cell::new(None) };
}

impl Origin {
    /// The present process.
    pub fn here() -> Self {
        Self(Some(process::id()))
    }

    /// Every process, for tests that show the damage.
    #[doc(hidden)]
    pub fn anywhere() -> Self {
        Self(None)
    }

    /// Whether the present process is that of the origin; `now` was read after the last await.
    #[inline]
    pub fn is_here(self, now: Instant) -> bool {
        self.0.is_none_or(|pid| pid == present(now))
    }

    /// What every call in another process fails with.
    pub fn error(self) -> StoreError {
        let made_in = self.0.unwrap_or_default();
        StoreError::new(
            StoreErrorKind::Config,
            format!(
                "the lock runtime was made in process {made_in}, and this is process {}, a fork of it",
                process::id()
            ),
            "make a lock runtime in each process, after the fork",
        )
    }
}

/// The id of the present process.
#[inline]
fn present(now: Instant) -> u32 {
    let seen = SEEN.get();
    // Two clocks may be read in one thread: a later time than the present one tells nothing.
    if let Some(Seen { pid, at }) = seen
        && now >= at
        && now.saturating_since(at) < SAME_PROCESS
    {
        return pid;
    }
    let pid = process::id();
    SEEN.set(Some(Seen { pid, at: now }));
    pid
}

/// Work that goes on in the process of its origin alone: in a copy of that process it is neither
/// polled nor dropped, since both may wait for a thread that is not there.
pub struct AtHome<F> {
    origin: Origin,
    clock: Arc<dyn Clock>,
    work: Option<F>,
}

impl<F: Future + Unpin> AtHome<F> {
    /// Work of a process, which is boxed as a rule.
    pub fn new(origin: Origin, clock: &Arc<dyn Clock>, work: F) -> Self {
        Self { origin, clock: Arc::clone(clock), work: Some(work) }
    }
}

impl<F: Future + Unpin> Future for AtHome<F> {
    type Output = F::Output;

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<Self::Output> {
        let is_here = self.origin.is_here(self.clock.now());
        let Some(work) = self.work.as_mut().filter(|_| is_here) else { return Poll::Pending };
        let output = ready!(Pin::new(work).poll(cx));
        self.work = None;
        Poll::Ready(output)
    }
}

impl<F> Drop for AtHome<F> {
    fn drop(&mut self) {
        if self.work.is_some() && !self.origin.is_here(self.clock.now()) {
            mem::forget(self.work.take());
        }
    }
}

impl<F> fmt::Debug for AtHome<F> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("AtHome").field("origin", &self.origin).finish_non_exhaustive()
    }
}

#[cfg(test)]
mod tests {
    use std::{future::ready, task::Waker, time::Duration};

    use super::*;
    use crate::clock::SystemClock;

    fn at(micros: u64) -> Instant {
        Instant::at(Duration::from_micros(micros))
    }

    /// The process is taken for another one, as in a fork.
    fn seen_as(pid: u32, at: Instant) {
        SEEN.set(Some(Seen { pid, at }));
    }

    #[test]
    fn a_process_is_looked_at_again_before_a_fork_can_have_happened() {
        let origin = Origin::here();
        assert!(origin.is_here(at(100)));
        seen_as(1, at(100));
        assert!(!origin.is_here(at(109)), "what the thread has seen last counts");
        assert!(origin.is_here(at(110)), "the system is asked");
        seen_as(1, at(200));
        assert!(origin.is_here(at(150)), "another clock tells nothing");
        seen_as(1, at(300));
        assert!(Origin::anywhere().is_here(at(300)));
    }

    #[test]
    fn an_error_names_both_processes_and_what_to_do() {
        let error = Origin(Some(7)).error();
        assert_eq!(error.kind(), StoreErrorKind::Config);
        let text = error.to_string();
        let here = format!("this is process {}", process::id());
        assert!(text.contains("made in process 7") && text.contains(&here), "{text}");
        assert!(text.contains("after the fork"), "{text}");
    }

    #[test]
    fn work_is_neither_polled_nor_dropped_in_a_copy_of_its_process() {
        let clock: Arc<dyn Clock> = Arc::new(SystemClock);
        let mut cx = Context::from_waker(Waker::noop());
        let lives = Arc::new(());
        let work = |origin| AtHome::new(origin, &clock, ready(Arc::clone(&lives)));

        let mut here = work(Origin::here());
        assert!(Pin::new(&mut here).poll(&mut cx).is_ready());
        drop(here);
        drop(work(Origin::here()));
        assert_eq!(Arc::strong_count(&lives), 1, "dropped as ever");

        let mut copy = work(Origin(Some(0)));
        assert!(Pin::new(&mut copy).poll(&mut cx).is_pending());
        drop(copy);
        assert_eq!(Arc::strong_count(&lives), 2, "it was not dropped");
    }
}
