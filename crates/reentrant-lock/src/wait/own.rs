use std::task::{Context, Poll};

use leasehold_core::{
    Instant,
    store::{Acquire as AcquireCommand, AcquireAnswer, StoreFuture},
};

use crate::{
    cohort::Lead,
    driver::{InLine, Led},
};

use super::call::Wait;

/// The first task's own command, on its way.
pub(super) struct Own<'a> {
    sent_at: Instant,
    pub(super) deadline: Instant,
    answer: StoreFuture<'a, AcquireAnswer>,
    /// Whether it was polled before.
    pub(super) is_sent: bool,
}

impl Wait {
    /// Asks for all who come after it, as the first.
    pub(super) fn ask(&self, lead: Lead) -> Own<'_> {
        let Self { engine, name, wish, .. } = self;
        let sent_at = engine.clock.now();
        let deadline = sent_at + engine.timing.command_deadline(wish.ttl);
        let answer = engine.store.acquire(AcquireCommand {
            name,
            id: lead.id,
            ttl: wish.ttl,
            watermark: engine.cohorts.shared.watermarks.of(sent_at, name),
            label: wish.label.as_ref().unwrap_or(&engine.label),
            wait: lead.heartbeat,
            deadline,
        });
        Own { sent_at, deadline, answer, is_sent: false }
    }

    /// Polls the first task's own command, if there is one.
    pub(super) fn look_at_own(
        &self,
        in_line: &InLine,
        own: &mut Option<Own<'_>>,
        cx: &mut Context<'_>,
    ) -> Option<Led> {
        let Own { sent_at, answer, .. } = own.as_mut()?;
        let (sent_at, Poll::Ready(answer)) = (*sent_at, answer.as_mut().poll(cx)) else {
            return None;
        };
        *own = None;
        Some(in_line.asked(&self.wish, sent_at, self.engine.counted(answer)))
    }
}
