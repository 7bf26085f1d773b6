use leasehold_core::{
    AcquisitionId, LockName, Replication,
    store::{Command, Heartbeats, Inspect, Release, Renewals},
};

use super::kind::CommandKind;

/// What a command is about.
pub trait CommandFacts {
    /// The kind of the command.
    fn kind(&self) -> CommandKind;

    /// The locks that the command is about: several for batches only, none for a scan.
    fn names(&self) -> Vec<&LockName>;

    /// The acquisitions that the command is about; none for a look.
    fn ids(&self) -> Vec<AcquisitionId>;

    /// Which acknowledgements a good reply needs; of a batch, the most.
    fn acks(&self) -> Replication;

    /// The same command, for a store that has no replicas.
    #[must_use]
    fn without_acks(&self) -> Self;
}

impl CommandFacts for Command {
    fn kind(&self) -> CommandKind {
        match self {
            Self::Acquire(_) => CommandKind::Acquire,
            Self::Heartbeat(_) => CommandKind::Heartbeat,
            Self::Hold(_) => CommandKind::Hold,
            Self::Release(_) => CommandKind::Release,
            Self::Renew(_) => CommandKind::Renew,
            Self::Withdraw(_) => CommandKind::Withdraw,
            Self::Inspect(_) => CommandKind::Inspect,
            Self::Scan(_) => CommandKind::Scan,
            Self::ForceRelease(_) => CommandKind::ForceRelease,
        }
    }

    fn names(&self) -> Vec<&LockName> {
        match self {
            Self::Heartbeat(Heartbeats { batch, .. }) => {
                batch.iter().map(|waiter| &waiter.name).collect()
            }
            Self::Renew(Renewals { batch }) => batch.iter().map(|renewal| &renewal.name).collect(),
            Self::Inspect(Inspect { names }) => names.iter().collect(),
            Self::Scan(_) => Vec::new(),
            Self::Acquire(one) => vec![&one.name],
            Self::Hold(one) => vec![&one.name],
            Self::Release(one) => vec![&one.name],
            Self::Withdraw(one) => vec![&one.name],
            Self::ForceRelease(one) => vec![&one.name],
        }
    }

    fn ids(&self) -> Vec<AcquisitionId> {
        match self {
            Self::Heartbeat(Heartbeats { batch, .. }) => {
                batch.iter().map(|waiter| waiter.id).collect()
            }
            Self::Renew(Renewals { batch }) => batch.iter().map(|renewal| renewal.id).collect(),
            Self::Release(Release { id, next, .. }) => {
                let next = next.as_ref().map(|next| next.id);
                [Some(*id), next].into_iter().flatten().collect()
            }
            Self::Acquire(one) => vec![one.id],
            Self::Hold(one) => vec![one.id],
            Self::Withdraw(one) => vec![one.id],
            Self::ForceRelease(one) => vec![one.id],
            Self::Inspect(_) | Self::Scan(_) => Vec::new(),
        }
    }

    fn acks(&self) -> Replication {
        match self {
            Self::Acquire(one) => one.acks,
            Self::Hold(one) => one.acks,
            Self::Renew(Renewals { batch }) => {
                batch.iter().map(|one| one.acks).max().unwrap_or_default()
            }
            _ => Replication::NONE,
        }
    }

    fn without_acks(&self) -> Self {
        let mut command = self.clone();
        match &mut command {
            Self::Acquire(one) => one.acks = Replication::NONE,
            Self::Hold(one) => one.acks = Replication::NONE,
            Self::Renew(Renewals { batch }) => {
                for one in batch {
                    one.acks = Replication::NONE;
                }
            }
            _ => {}
        }
        command
    }
}
