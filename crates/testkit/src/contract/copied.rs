use leasehold_core::{AcquisitionId, Fence};

use super::{
    scene::Scene,
    words::{secs, worded},
};

/// A command that a case sends more than once.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Copied {
    /// An acquire for 60 s.
    Acquire,
    /// A hold that counts two, for 60 s.
    Hold,
    /// A renewal to 60 s.
    Renew,
    /// A release.
    Release,
    /// A release that keeps the lock closed for 90 s.
    Keep,
    /// A withdrawal.
    Withdraw,
    /// A forced release.
    ForceRelease,
    /// An acquire for 60 s that waits.
    Wait,
    /// The same, as a batch of one.
    Heartbeat,
    /// A release that queues the runtime's next acquisition.
    Next,
}

impl Copied {
    /// Every command that queues nobody.
    pub const ALL: [Self; 7] = [
        Self::Acquire,
        Self::Hold,
        Self::Renew,
        Self::Release,
        Self::Keep,
        Self::Withdraw,
        Self::ForceRelease,
    ];

    /// Every command.
    pub const WITH_QUEUE: [Self; 10] = [
        Self::Acquire,
        Self::Hold,
        Self::Renew,
        Self::Release,
        Self::Keep,
        Self::Withdraw,
        Self::ForceRelease,
        Self::Wait,
        Self::Heartbeat,
        Self::Next,
    ];

    /// Sends the command; the answer, as it shows itself.
    pub async fn send(self, scene: &Scene, id: AcquisitionId, fence: Fence) -> String {
        match self {
            Self::Acquire => format!("{:?}", scene.acquire(id).await),
            Self::Hold => format!("{:?}", scene.hold(id, fence, (2, 1)).await),
            Self::Renew => format!("{:?}", scene.renew(id, fence).await),
            Self::Release => format!("{:?}", scene.release(id, fence).await),
            Self::Keep => format!("{:?}", scene.keep(id, fence, secs(90)).await),
            Self::Withdraw => format!("{:?}", scene.withdraw(id).await),
            Self::ForceRelease => format!("{:?}", scene.force_release(id, fence).await),
            Self::Wait => format!("{:?}", scene.wait(id).await),
            Self::Heartbeat => format!("{:?}", scene.heartbeat(&[scene.waiter(id)]).await),
            Self::Next => {
                let next = worded(id.runtime(), id.number() + 1);
                format!("{:?}", scene.release_and_queue(id, fence, next).await)
            }
        }
    }
}
