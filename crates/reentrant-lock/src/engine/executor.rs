use std::{io, sync::Arc};

use tokio::{
    runtime::{Builder, Handle},
    sync::oneshot,
};

/// The tokio runtime on which connections, renewals and cleanup live.
///
/// Cloning is cheap. A thread of its own ends when the last clone is dropped.
#[derive(Debug, Clone)]
pub struct Executor {
    handle: Handle,
    _thread: Option<Arc<OwnThread>>,
}

#[derive(Debug)]
struct OwnThread {
    _stop: oneshot::Sender<()>,
}

impl Executor {
    /// The tokio runtime that the caller runs in; `None` outside of one.
    pub fn current() -> Option<Self> {
        let handle = Handle::try_current().ok()?;
        Some(Self { handle, _thread: None })
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
        Ok(Self { handle, _thread: Some(Arc::new(OwnThread { _stop: stop })) })
    }

    /// The handle to spawn on.
    pub fn handle(&self) -> &Handle {
        &self.handle
    }
}
