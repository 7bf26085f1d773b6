//! How answers of shared calls get to those who wait for them.

use tokio::sync::oneshot;

use super::{acknowledge::Answered, dialect::Dialect};
use crate::store::StoreError;

pub(super) type CommandAnswer = Result<Answered, StoreError>;

/// Where the answer to a command goes.
#[derive(Debug)]
pub(super) enum ReplyTo<C> {
    /// To the caller, who waits for it alone.
    One(oneshot::Sender<Delivered<C>>),
    /// To one who gathers several answers.
    Gathered(Box<dyn Gather>),
}

/// Takes the answer to a command that was posted.
pub(super) trait Gather: std::fmt::Debug + Send + Sync {
    /// Whether nobody needs the answer any more.
    fn is_closed(&self) -> bool;

    /// The answer is there; dropped without one, the command has none.
    fn tell(self: Box<Self>, answer: CommandAnswer);
}

impl<C> ReplyTo<C> {
    pub(super) fn is_closed(&self) -> bool {
        match self {
            Self::One(sender) => sender.is_closed(),
            Self::Gathered(gather) => gather.is_closed(),
        }
    }

    pub(super) fn send(self, delivered: Delivered<C>) {
        match (self, delivered) {
            // Nobody waits for the answer of a call that was dropped.
            (Self::One(sender), delivered) => drop(sender.send(delivered)),
            (Self::Gathered(gather), Delivered::Answered(answer)) => gather.tell(answer),
            // Who gathers has no use for a command that comes back: it has no answer.
            (Self::Gathered(_), Delivered::Alone { .. }) => {}
        }
    }
}

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
    answered.for_each(|(reply, answer)| reply.send(answer));
}
