use std::time::Duration;

use super::super::row::{LeaseRow, Queue, Row, ServerTime};
use crate::{
    store::{FenceSettings, Granted, Push, whole_millis},
    types::{AcquisitionId, LockName, RuntimeId},
};

/// A message that a rule sends to a runtime.
#[derive(Debug)]
pub(crate) struct Mail {
    pub(crate) to: RuntimeId,
    pub(crate) push: Push,
}

/// One execution of a rule on the row of a name, at one moment.
#[derive(Debug)]
pub(crate) struct Step<'a> {
    pub(super) row: &'a mut Row,
    pub(super) name: &'a LockName,
    pub(super) now: ServerTime,
    pub(super) settings: FenceSettings,
    mail: Vec<Mail>,
}

impl<'a> Step<'a> {
    /// A step that has sent nothing yet.
    pub(crate) fn new(
        row: &'a mut Row,
        name: &'a LockName,
        now: ServerTime,
        settings: FenceSettings,
    ) -> Self {
        Self { row, name, now, settings, mail: Vec::new() }
    }

    /// What the step has sent, in order.
    pub(crate) fn into_mail(self) -> Vec<Mail> {
        self.mail
    }

    pub(super) fn send(&mut self, to: AcquisitionId, push: Push) {
        self.mail.push(Mail { to: to.runtime(), push });
    }

    pub(super) fn lease(&mut self) -> Option<&mut LeaseRow> {
        self.row.lease(self.now)
    }

    /// The waiters.
    pub(super) fn queue(&mut self) -> &mut Queue {
        self.row.queue(self.now)
    }

    /// How long until `end`, in whole milliseconds as in Redis.
    pub(super) fn left(&self, end: ServerTime) -> Duration {
        whole_millis(self.now.until(end))
    }

    /// How long the present lease has left, if there is one.
    pub(super) fn lease_left(&mut self) -> Option<Duration> {
        let ends = self.lease()?.ends;
        Some(self.left(ends))
    }

    /// The grant that an acquisition has, unless it is only kept closed.
    pub(super) fn own_grant(&mut self, id: AcquisitionId) -> Option<Granted> {
        let lease = self.lease().filter(|lease| lease.id == id && !lease.kept)?;
        let (first, last, ends) = (lease.fence, lease.last, lease.ends);
        let contended = self.queue().has_others(id.runtime());
        Some(Granted { first, last, remaining: self.left(ends), contended, regressed: false })
    }

    /// Whether an acquisition is dead.
    pub(super) fn is_withdrawn(&mut self, id: AcquisitionId) -> bool {
        self.row.is_withdrawn(self.now, id)
    }

    /// Whether a command is late: its runtime has queued a newer acquisition.
    pub(super) fn is_outrun(&mut self, id: AcquisitionId) -> bool {
        self.queue().of(id.runtime()).is_some_and(|place| place.id.number() > id.number())
    }
}
