use std::{
    collections::HashMap,
    sync::{Arc, Mutex, MutexGuard, PoisonError},
};

use leasehold_core::Stamp;

use crate::{
    error::StaleFence,
    gate::{FenceGate, GateFuture},
    refusal::Refusals,
    rule::{Admitted, Verdict, judge},
};

/// Watermarks in the memory of this process, for data that lives there too.
///
/// It keeps one watermark for every resource it has ever seen, and forgets none: its memory is
/// bounded by the number of resources alone, so resources should be things that recur, not
/// requests. It knows only writers of this process; a storage that is shared needs its own gate.
#[derive(Debug)]
pub struct MemoryGate {
    watermarks: Mutex<HashMap<Box<str>, Watermark>>,
    refusals: Refusals,
}

type Watermark = Arc<Mutex<Option<Stamp>>>;

impl MemoryGate {
    /// A gate that has seen nothing yet.
    pub fn new() -> Self {
        Self { watermarks: Mutex::default(), refusals: Refusals::new("memory") }
    }

    /// Runs a write if the stamp is admitted, in one step with the comparison.
    ///
    /// Writes to one resource run one after another, writes to different ones at the same time.
    /// The watermark moves before the write runs, so a write that panics lets no older one in.
    /// A write that calls this gate for the same resource would wait for itself forever.
    ///
    /// # Errors
    ///
    /// [`StaleFence`] when another holder has been admitted; the write has not run.
    pub fn write<T>(
        &self,
        resource: &str,
        presented: Stamp,
        write: impl FnOnce() -> T,
    ) -> Result<T, StaleFence> {
        let watermark = self.watermark(resource);
        let mut seen = lock(&watermark);
        self.pass(&mut seen, resource, presented)?;
        Ok(write())
    }

    /// How many resources the gate knows.
    pub fn known_resources(&self) -> usize {
        lock(&self.watermarks).len()
    }

    fn pass(
        &self,
        seen: &mut Option<Stamp>,
        resource: &str,
        presented: Stamp,
    ) -> Result<Admitted, StaleFence> {
        match judge(*seen, presented) {
            Verdict::Admit(admitted) => {
                *seen = Some(presented);
                self.refusals.admitted();
                Ok(admitted)
            }
            Verdict::Refuse { highest } => Err(self.refusals.refuse(resource, presented, highest)),
        }
    }

    fn watermark(&self, resource: &str) -> Watermark {
        let mut watermarks = lock(&self.watermarks);
        if let Some(watermark) = watermarks.get(resource) {
            return Arc::clone(watermark);
        }
        Arc::clone(watermarks.entry(resource.into()).or_default())
    }
}

impl Default for MemoryGate {
    fn default() -> Self {
        Self::new()
    }
}

impl FenceGate for MemoryGate {
    fn admit<'a>(&'a self, resource: &'a str, presented: Stamp) -> GateFuture<'a> {
        Box::pin(async move {
            let watermark = self.watermark(resource);
            let mut seen = lock(&watermark);
            Ok(self.pass(&mut seen, resource, presented)?)
        })
    }
}

/// A panic of a caller's write leaves nothing half done here: the watermark had moved before.
fn lock<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(PoisonError::into_inner)
}

#[cfg(test)]
mod tests {
    use std::panic::{AssertUnwindSafe, catch_unwind};

    use super::*;
    use crate::{error::GateError, testing::stamp};

    #[tokio::test]
    async fn a_taken_lease_shuts_out_the_holder_before_its_first_write() {
        let gate: Box<dyn FenceGate> = Box::new(MemoryGate::new());
        let (older, newer) = (stamp(41, 1), stamp(42, 2));
        assert_eq!(gate.admit("a", older).await, Ok(Admitted::First));
        assert_eq!(gate.advance("a", newer).await, Ok(Admitted::Newer));
        assert_eq!(gate.advance("a", newer).await, Ok(Admitted::Again));
        let stale = StaleFence { presented: older, highest: newer, resource: "a".into() };
        assert_eq!(gate.admit("a", older).await, Err(GateError::Stale(stale)));
        assert_eq!(gate.admit("b", older).await, Ok(Admitted::First));
    }

    #[test]
    fn a_refused_write_does_not_run_and_a_panicking_one_keeps_its_watermark() {
        let gate = MemoryGate::new();
        let panics = || gate.write("a", stamp(42, 2), || panic!("in the caller's write"));
        assert!(catch_unwind(AssertUnwindSafe(panics)).is_err());
        let mut wrote = false;
        assert!(gate.write("a", stamp(41, 1), || wrote = true).is_err());
        assert!(gate.write("a", stamp(42, 3), || wrote = true).is_err());
        assert!(!wrote);
        assert_eq!(gate.write("a", stamp(42, 2), || 7), Ok(7));
        assert_eq!(gate.known_resources(), 1);
    }

    #[test]
    fn racing_writers_leave_the_newest_value() {
        let gate = MemoryGate::new();
        let value = Mutex::new(0);
        std::thread::scope(|scope| {
            for fence in 1..=64 {
                let (gate, value) = (&gate, &value);
                scope.spawn(move || {
                    let _ = gate.write("a", stamp(fence, fence), || *lock(value) = fence);
                });
            }
        });
        assert_eq!(*lock(&value), 64);
    }
}
