use std::{
    future::Future,
    pin::Pin,
    sync::Arc,
    task::{Context, Poll},
    time::Duration,
};

use leasehold_core::{Clock, Instant, Sleep};

use super::executor::Executor;

/// A clock whose timers live on an executor, whatever polls them.
///
/// A tokio timer belongs to the runtime in which it is first polled: it panics outside of tokio, and
/// when that runtime is gone. These timers belong to the executor, and keep its thread for as long as
/// they live; tasks that hold this clock end with their owner, so they do not keep it for ever.
#[derive(Debug)]
pub(super) struct HomeClock {
    clock: Arc<dyn Clock>,
    executor: Executor,
}

struct AtHome {
    // Dropped first: it belongs to the executor.
    sleep: Sleep,
    executor: Executor,
}

impl HomeClock {
    pub(super) fn new(clock: Arc<dyn Clock>, executor: Executor) -> Self {
        Self { clock, executor }
    }
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
        Box::pin(AtHome { sleep, executor })
    }

    fn unix_time(&self) -> Duration {
        self.clock.unix_time()
    }
}

impl Future for AtHome {
    type Output = ();

    fn poll(mut self: Pin<&mut Self>, cx: &mut Context<'_>) -> Poll<()> {
        let Self { sleep, executor } = &mut *self;
        let _inside = executor.handle().enter();
        sleep.as_mut().poll(cx)
    }
}
