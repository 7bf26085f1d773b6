use std::{
    future::Future,
    io,
    panic::{AssertUnwindSafe, catch_unwind},
    pin::Pin,
    sync::Arc,
    task::{Context, Poll, Waker},
    time::Duration,
};

use leasehold_core::{AtHome, Clock, Instant, Origin, Sleep, has_timers};
use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
    task::{JoinError, JoinHandle},
};

/// The tokio runtime on which connections, renewals and cleanup live.
///
/// Cloning is cheap. A thread of its own ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Executor {
    handle: Handle,
    /// Ends the thread of its own when it is dropped.
    thread: Option<Arc<oneshot::Sender<()>>>,
}

impl Executor {
    /// The tokio runtime that the caller runs in; `None` outside of one.
    pub fn current() -> Option<Self> {
        let handle = Handle::try_current().ok()?;
        Some(Self { handle, thread: None })
    }

    /// A thread with a runtime of its own, which blocking code elsewhere cannot starve.
    ///
    /// # Errors
    ///
    /// [`io::Error`] when the system refuses another thread or event queue.
    pub fn own_thread() -> io::Result<Self> {
        let runtime = Builder::new_current_thread().enable_all().build()?;
        let handle = runtime.handle().clone();
        let (stop, stopped) = oneshot::channel::<()>();
        std::thread::Builder::new().name("leasehold".into()).spawn(move || {
            // An error means that the last handle is gone, which is the signal.
            let _ = runtime.block_on(stopped);
            runtime.shutdown_background();
        })?;
        Ok(Self { handle, thread: Some(Arc::new(stop)) })
    }

    /// Whether timers of a clock work here. In a tokio runtime without them tokio panics, which is
    /// caught here.
    pub fn has_timers(&self, clock: &dyn Clock) -> bool {
        let _inside = self.handle.enter();
        let set = || {
            let mut sleep = clock.sleep_until(clock.now() + Duration::from_secs(1));
            let _pending = sleep.as_mut().poll(&mut Context::from_waker(Waker::noop()));
        };
        catch_unwind(AssertUnwindSafe(set)).is_ok() && (!clock.sleeps_by_tokio() || has_timers())
    }

    /// Runs a future on the executor, whatever polls the one that is returned.
    ///
    /// # Errors
    ///
    /// [`JoinError`] when the tokio runtime ended before the future, or the future panicked.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future drops the one that it runs.
    pub async fn run<T: Send + 'static>(
        &self,
        work: impl Future<Output = T> + Send + 'static,
    ) -> Result<T, JoinError> {
        let mut running = Running(self.handle.spawn(work));
        (&mut running.0).await
    }

    /// A clock for what lives here: with a thread of its own, its timers are that thread's, so that
    /// what waits for them may be polled anywhere.
    #[must_use]
    pub fn clock(&self, clock: Arc<dyn Clock>) -> Arc<dyn Clock> {
        if !self.is_own_thread() {
            return clock;
        }
        Arc::new(HomeClock { clock, origin: Origin::here(), executor: self.clone() })
    }

    /// Whether it is a thread of its own.
    pub(crate) fn is_own_thread(&self) -> bool {
        self.thread.is_some()
    }

    /// The handle to spawn on.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}

struct Running<T>(JoinHandle<T>);

impl<T> Drop for Running<T> {
    fn drop(&mut self) {
        self.0.abort();
    }
}

/// A clock whose timers live on an executor, whatever polls them.
///
/// A tokio timer belongs to the runtime in which it is first polled: it panics outside of tokio,
/// and when that runtime is gone. These timers keep the thread of their executor for as long as
/// they live; tasks that hold this clock end with their owner.
#[derive(Debug)]
// ADR 0017
struct HomeClock {
    clock: Arc<dyn Clock>,
    origin: Origin,
    executor: Executor,
}

struct HomeSleep {
    // Dropped first: it belongs to the executor. A fork has not got its thread.
    sleep: AtHome<Sleep>,
    executor: Executor,
}

impl Clock for HomeClock {
    fn now(&self) -> Instant {
        self.clock.now()
    }

    fn sleep_until(&self, at: Instant) -> Sleep {
        let executor = self.executor.clone();
        let sleep = {
            let _inside = executor.handle().enter();
            self.clock.sleep_until(at)
        };
        let sleep = AtHome::new(self.origin, &self.clock, sleep);
        Box::pin(HomeSleep { sleep, executor })
    }

    fn unix_time(&self) -> Duration {
        self.clock.unix_time()
    }
}

impl Future for HomeSleep {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { sleep, executor } = &mut *self;
        let _inside = executor.handle().enter();
        Pin::new(sleep).poll(cx)
    }
}
