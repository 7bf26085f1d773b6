//! How answers of shared calls get to those who wait for them.

use leasehold_core::StoreError;
use tokio::sync::oneshot;

use super::{acknowledge::Answered, dialect::Dialect};

pub(super) type CommandAnswer = Result<Answered, StoreError>;

/// Where the answer to a command goes: to the caller, who waits for it.
pub(super) type ReplyTo<C> = oneshot::Sender<Delivered<C>>;

/// How a command ended that a courier took along.
#[derive(Debug)]
pub(super) enum Delivered<C> {
    Answered(CommandAnswer),
    /// It is to be sent as a call of its own. An earlier copy has done nothing, unless it may have
    /// run.
    Alone {
        command: C,
        may_have_run: bool,
    },
}

/// Commands of a shared call whose connection ended: those that may be sent again are, each alone.
pub(super) fn given_back<D: Dialect>(
    commands: Vec<D::Command>,
    failed: &StoreError,
) -> Vec<Delivered<D::Command>> {
    let each = |command: D::Command| {
        if D::repeats(&command) {
            Delivered::Alone { command, may_have_run: true }
        } else {
            Delivered::Answered(Err(failed.clone()))
        }
    };
    commands.into_iter().map(each).collect()
}

pub(super) fn all_failed<C>(count: usize, failed: &StoreError) -> Vec<Delivered<C>> {
    (0..count).map(|_| Delivered::Answered(Err(failed.clone()))).collect()
}

pub(super) fn answer<C>(answered: impl Iterator<Item = (ReplyTo<C>, Delivered<C>)>) {
    // Nobody waits for the answer of a call that was dropped.
    answered.for_each(|(reply, answer)| drop(reply.send(answer)));
}
