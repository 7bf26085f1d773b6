use std::time::Duration;

use leasehold_core::{
    AcquisitionId, FenceToken, Instant, LockName, LockStore, RuntimeLabel, StoreError, Ttl,
    lease::HoldUpdate,
    store::{Acquire, ForceRelease, Hold, Release, Renewal, Withdraw},
};

use super::{answer::Answer, kind::CommandKind};

/// A command that owns its words, so that it can outlive its sender; without its deadline.
#[derive(Debug, Clone, PartialEq, Eq)]
#[expect(missing_docs, reason = "the fields are those of the commands of `leasehold_core::store`")]
pub enum Command {
    /// An [`Acquire`].
    Acquire {
        name: LockName,
        id: AcquisitionId,
        ttl: Ttl,
        watermark: Option<FenceToken>,
        label: RuntimeLabel,
    },
    /// A [`Hold`].
    Hold { name: LockName, id: AcquisitionId, fence: FenceToken, update: HoldUpdate, ttl: Ttl },
    /// A [`Release`].
    Release { name: LockName, id: AcquisitionId, fence: FenceToken, keep: Option<Duration> },
    /// A batch of renewals.
    Renew { batch: Vec<Renewal> },
    /// A [`Withdraw`].
    Withdraw { name: LockName, id: AcquisitionId },
    /// A look at a lock.
    Inspect { name: LockName },
    /// A [`ForceRelease`].
    ForceRelease { name: LockName, id: AcquisitionId, fence: FenceToken },
}

impl Command {
    /// The kind of the command.
    pub fn kind(&self) -> CommandKind {
        match self {
            Self::Acquire { .. } => CommandKind::Acquire,
            Self::Hold { .. } => CommandKind::Hold,
            Self::Release { .. } => CommandKind::Release,
            Self::Renew { .. } => CommandKind::Renew,
            Self::Withdraw { .. } => CommandKind::Withdraw,
            Self::Inspect { .. } => CommandKind::Inspect,
            Self::ForceRelease { .. } => CommandKind::ForceRelease,
        }
    }

    /// The locks that the command is about; several only for renewals.
    pub fn names(&self) -> Vec<&LockName> {
        match self {
            Self::Renew { batch } => batch.iter().map(|renewal| &renewal.name).collect(),
            Self::Acquire { name, .. }
            | Self::Hold { name, .. }
            | Self::Release { name, .. }
            | Self::Withdraw { name, .. }
            | Self::Inspect { name }
            | Self::ForceRelease { name, .. } => vec![name],
        }
    }

    /// The acquisitions that the command is about; none for a look.
    pub fn ids(&self) -> Vec<AcquisitionId> {
        match self {
            Self::Renew { batch } => batch.iter().map(|renewal| renewal.id).collect(),
            Self::Acquire { id, .. }
            | Self::Hold { id, .. }
            | Self::Release { id, .. }
            | Self::Withdraw { id, .. }
            | Self::ForceRelease { id, .. } => vec![*id],
            Self::Inspect { .. } => Vec::new(),
        }
    }

    /// Runs the command on a store.
    pub(super) async fn run(
        &self,
        store: &dyn LockStore,
        deadline: Instant,
    ) -> Result<Answer, StoreError> {
        match self {
            Self::Acquire { name, id, ttl, watermark, label } => {
                let (id, ttl, watermark) = (*id, *ttl, *watermark);
                let command = Acquire { name, id, ttl, watermark, label, deadline };
                store.acquire(command).await.map(Answer::Acquire)
            }
            Self::Hold { name, id, fence, update, ttl } => {
                let (id, fence, update, ttl) = (*id, *fence, *update, *ttl);
                let command = Hold { name, id, fence, update, ttl, deadline };
                store.hold(command).await.map(Answer::Hold)
            }
            Self::Release { name, id, fence, keep } => {
                let (id, fence, keep) = (*id, *fence, *keep);
                let command = Release { name, id, fence, keep, deadline };
                store.release(command).await.map(Answer::Release)
            }
            Self::Renew { batch } => store.renew(batch, deadline).await.map(Answer::Renew),
            Self::Withdraw { name, id } => {
                let command = Withdraw { name, id: *id, deadline };
                store.withdraw(command).await.map(Answer::Withdraw)
            }
            Self::Inspect { name } => store.inspect(name, deadline).await.map(Answer::Inspect),
            Self::ForceRelease { name, id, fence } => {
                let command = ForceRelease { name, id: *id, fence: *fence, deadline };
                store.force_release(command).await.map(Answer::ForceRelease)
            }
        }
    }
}
