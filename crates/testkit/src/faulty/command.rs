use std::time::Duration;

use leasehold_core::{
    Acks, AcquisitionId, FenceToken, Instant, LockName, LockStore, NamePattern, RuntimeLabel,
    StoreError, Ttl,
    lease::HoldUpdate,
    store::{
        Acquire, ForceRelease, Heartbeat, Hold, Release, Renewal, Scan, ScanCursor, Waiter,
        Withdraw,
    },
};

use super::{answer::Answer, kind::CommandKind, next::OwnedNext};

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
        keeps: bool,
        wait: Option<Heartbeat>,
        acks: Acks,
    },
    /// A batch of waiters.
    Heartbeat { batch: Vec<Waiter>, label: RuntimeLabel },
    /// A [`Hold`].
    Hold {
        name: LockName,
        id: AcquisitionId,
        fence: FenceToken,
        update: HoldUpdate,
        ttl: Ttl,
        acks: Acks,
    },
    /// A [`Release`].
    Release {
        name: LockName,
        id: AcquisitionId,
        fence: FenceToken,
        keep: Option<Duration>,
        next: Option<OwnedNext>,
    },
    /// A batch of renewals.
    Renew { batch: Vec<Renewal> },
    /// A [`Withdraw`].
    Withdraw { name: LockName, id: AcquisitionId },
    /// A look at a lock.
    Inspect { name: LockName },
    /// A [`Scan`].
    Scan { pattern: NamePattern, cursor: ScanCursor },
    /// A [`ForceRelease`].
    ForceRelease { name: LockName, id: AcquisitionId, fence: FenceToken },
}

impl Command {
    /// The kind of the command.
    pub fn kind(&self) -> CommandKind {
        match self {
            Self::Acquire { .. } => CommandKind::Acquire,
            Self::Heartbeat { .. } => CommandKind::Heartbeat,
            Self::Hold { .. } => CommandKind::Hold,
            Self::Release { .. } => CommandKind::Release,
            Self::Renew { .. } => CommandKind::Renew,
            Self::Withdraw { .. } => CommandKind::Withdraw,
            Self::Inspect { .. } => CommandKind::Inspect,
            Self::Scan { .. } => CommandKind::Scan,
            Self::ForceRelease { .. } => CommandKind::ForceRelease,
        }
    }

    /// The locks that the command is about: several for batches only, none for a scan.
    pub fn names(&self) -> Vec<&LockName> {
        match self {
            Self::Heartbeat { batch, .. } => batch.iter().map(|waiter| &waiter.name).collect(),
            Self::Renew { batch } => batch.iter().map(|renewal| &renewal.name).collect(),
            Self::Scan { .. } => Vec::new(),
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
            Self::Heartbeat { batch, .. } => batch.iter().map(|waiter| waiter.id).collect(),
            Self::Renew { batch } => batch.iter().map(|renewal| renewal.id).collect(),
            Self::Release { id, next, .. } => {
                let next = next.as_ref().map(|next| next.id);
                [Some(*id), next].into_iter().flatten().collect()
            }
            Self::Acquire { id, .. }
            | Self::Hold { id, .. }
            | Self::Withdraw { id, .. }
            | Self::ForceRelease { id, .. } => vec![*id],
            Self::Inspect { .. } | Self::Scan { .. } => Vec::new(),
        }
    }

    /// Which acknowledgements a good answer needs; of a batch, the most.
    pub fn acks(&self) -> Acks {
        match self {
            Self::Acquire { acks, .. } | Self::Hold { acks, .. } => *acks,
            Self::Renew { batch } => batch.iter().map(|one| one.acks).max().unwrap_or_default(),
            _ => Acks::NONE,
        }
    }

    /// The same command, for a store that has no replicas.
    pub(crate) fn without_acks(&self) -> Self {
        let mut command = self.clone();
        match &mut command {
            Self::Acquire { acks, .. } | Self::Hold { acks, .. } => *acks = Acks::NONE,
            Self::Renew { batch } => batch.iter_mut().for_each(|one| one.acks = Acks::NONE),
            _ => {}
        }
        command
    }

    /// Runs the command on a store.
    pub(crate) async fn run(
        &self,
        store: &dyn LockStore,
        deadline: Instant,
    ) -> Result<Answer, StoreError> {
        match self {
            Self::Acquire { name, id, ttl, watermark, label, keeps, wait, acks } => {
                let (id, ttl, watermark, keeps, wait) = (*id, *ttl, *watermark, *keeps, *wait);
                let command =
                    Acquire { name, id, ttl, watermark, label, keeps, wait, acks: *acks, deadline };
                store.acquire(command).await.map(Answer::Acquire)
            }
            Self::Heartbeat { batch, label } => {
                store.heartbeat(batch, label, deadline).await.map(Answer::Heartbeat)
            }
            Self::Hold { name, id, fence, update, ttl, acks } => {
                let (id, fence, update, ttl) = (*id, *fence, *update, *ttl);
                let command = Hold { name, id, fence, update, ttl, acks: *acks, deadline };
                store.hold(command).await.map(Answer::Hold)
            }
            Self::Release { name, id, fence, keep, next } => {
                let (id, fence, keep) = (*id, *fence, *keep);
                let next = next.as_ref().map(OwnedNext::borrowed);
                let command = Release { name, id, fence, keep, next, deadline };
                store.release(command).await.map(Answer::Release)
            }
            Self::Renew { batch } => store.renew(batch, deadline).await.map(Answer::Renew),
            Self::Withdraw { name, id } => {
                let command = Withdraw { name, id: *id, deadline };
                store.withdraw(command).await.map(Answer::Withdraw)
            }
            Self::Inspect { name } => store.inspect(name, deadline).await.map(Answer::Inspect),
            Self::Scan { pattern, cursor } => {
                let command = Scan { pattern, cursor, deadline };
                store.scan(command).await.map(Answer::Scan)
            }
            Self::ForceRelease { name, id, fence } => {
                let command = ForceRelease { name, id: *id, fence: *fence, deadline };
                store.force_release(command).await.map(Answer::ForceRelease)
            }
        }
    }
}
