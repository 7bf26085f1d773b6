use std::{sync::Arc, time::Duration};

use backoff::{BackoffBuilder, ExponentialBackoff, ExponentialBuilder};
use leasehold_core::Entropy;

use super::core::Engine;

/// Pauses that double from 2 ms to 250 ms, each with jitter from the runtime's entropy.
#[derive(Debug)]
pub(crate) struct Backoff {
    pauses: ExponentialBackoff,
    entropy: Arc<dyn Entropy>,
}

impl Backoff {
    /// The shortest step.
    const SHORTEST: Duration = Duration::from_millis(2);
    /// The longest step.
    pub(crate) const LONGEST: Duration = Duration::from_millis(250);

    /// A fresh series.
    pub(crate) fn new(entropy: Arc<dyn Entropy>) -> Self {
        let pauses = ExponentialBuilder::default()
            .with_min_delay(Self::SHORTEST)
            .with_max_delay(Self::LONGEST)
            .with_factor(2.0)
            .without_max_times()
            .build();
        Self { pauses, entropy }
    }

    /// The next pause, between half and all of the present step.
    pub(crate) fn next_pause(&mut self) -> Duration {
        let step = self.pauses.next().unwrap_or(Self::LONGEST);
        step.mul_f64(0.5 + self.entropy.fraction() / 2.0)
    }
}

impl Engine {
    /// A fresh series of pauses.
    pub(crate) fn backoff(&self) -> Backoff {
        Backoff::new(Arc::clone(&self.entropy))
    }
}
