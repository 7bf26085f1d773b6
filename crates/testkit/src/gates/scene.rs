use std::sync::Arc;

use leasehold_core::{AcquisitionId, Fence, RuntimeId, Stamp};
use uuid::Uuid;

use super::{
    outcome::Outcome,
    subject::{Faults, GateSubject},
};

/// A subject, with the words of one case. Every value is the text of the stamp that it was written
/// under.
#[derive(Debug, Clone)]
pub struct Scene {
    subject: Arc<dyn GateSubject>,
}

impl Scene {
    /// The resource of cases that need one.
    pub const NAME: &'static str = "stock/7";

    /// A scene with a subject.
    pub fn new(subject: Arc<dyn GateSubject>) -> Self {
        Self { subject }
    }

    /// The subject.
    pub fn subject(&self) -> &dyn GateSubject {
        &*self.subject
    }

    /// What goes wrong between the gate and its storage.
    ///
    /// # Panics
    ///
    /// Panics if nothing can.
    pub fn faults(&self) -> &dyn Faults {
        self.subject.faults().expect("the case is for subjects with faults")
    }

    /// Writes under a stamp.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves open whether the write takes effect.
    pub async fn write(&self, name: &str, presented: Stamp) -> Outcome {
        self.subject.write(name, &presented.to_string(), presented).await
    }

    /// Writes as a service without a gate does.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves open whether the write takes effect.
    pub async fn write_past(&self, name: &str, writer: Stamp) -> Outcome {
        self.subject.write_past(name, &writer.to_string()).await
    }

    /// Advances, without a write.
    ///
    /// # Cancel safety
    ///
    /// Dropping the future leaves open whether the watermark has moved.
    pub async fn advance(&self, name: &str, presented: Stamp) -> Outcome {
        self.subject.advance(name, presented).await
    }

    /// Expects that the storage holds the value that was written under a stamp, or none.
    ///
    /// # Panics
    ///
    /// Panics if it holds another one.
    ///
    /// # Cancel safety
    ///
    /// It only reads.
    pub async fn assert_holds(&self, name: &str, written_under: Option<Stamp>) {
        let held = self.subject.read(name).await;
        assert_eq!(held, written_under.map(|stamp| stamp.to_string()), "{name:?}");
    }
}

/// The stamp of the lease of a number, with a fence.
///
/// # Panics
///
/// Panics if the fence is none.
pub fn stamp(fence: u64, lease: u64) -> Stamp {
    let lease = AcquisitionId::new(RuntimeId::new(Uuid::from_u128(7)), lease);
    Stamp::new(Fence::try_from(fence).expect("the case uses a fence"), lease)
}
