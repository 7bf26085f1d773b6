use std::{
    future::Future,
    thread::{self, JoinHandle},
};

use tokio::runtime::{Builder, Runtime};

use crate::Failure;

/// An instance of a service: a thread with a tokio runtime of its own, so that it can stall or
/// die without the others.
#[derive(Debug)]
pub struct Instance<T>(JoinHandle<Result<T, Failure>>);

impl<T: Send + 'static> Instance<T> {
    /// Starts it. It ends with its future; its other tasks are never polled again.
    pub fn start<F>(life: impl FnOnce() -> F + Send + 'static) -> Self
    where
        F: Future<Output = Result<T, Failure>>,
    {
        Self(thread::spawn(move || {
            let runtime: Runtime = Builder::new_current_thread().enable_all().build()?;
            let ended = runtime.block_on(life());
            runtime.shutdown_background();
            ended
        }))
    }

    /// Waits for its end, and blocks this thread.
    ///
    /// # Errors
    ///
    /// Those of the instance; a panic is one, too.
    pub fn join(self) -> Result<T, Failure> {
        self.0.join().map_err(|_| "an instance panicked")?
    }
}
